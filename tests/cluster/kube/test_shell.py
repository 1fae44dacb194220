"""What commands will do, said before: times, exit codes, what is printed; and nothing odd breaks it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.kube.commands.plans import FOR_EVER, Plan
from pumice.cluster.kube.commands.scripts import planned

SCRIPTS = [
    ("sleep 10s && xxx", 10.0, 127, "sh: xxx: not found\n"),
    ("sleep 5; exit 3", 5.0, 3, ""),
    ("sleep 1m 0.5", 60.5, 0, ""),
    ("false && echo a || echo b", 0.0, 0, "b\n"),
    ("true || echo a; exit", 0.0, 0, ""),
    ("echo 'run at' $(date); exit 1", 0.0, 1, "run at\n"),
    ("a=1 b='x  y'; echo $a \"$b\" $b ${a}2", 0.0, 0, "1 x  y x y 12\n"),
    ("set -e; false; echo no", 0.0, 1, ""),
    ("set -e; false || echo yes", 0.0, 0, "yes\n"),
    ("echo out > /dev/null; echo err >&2", 0.0, 0, "err\n"),
    ("exec sleep 3; echo no", 3.0, 0, ""),
    ("sh -c 'exit 4'; echo $?", 0.0, 0, "4\n"),
    ("sleep soon", 0.0, 1, "sleep: invalid time interval 'soon'\n"),
    ("exit 300", 0.0, 44, ""),
    ("echo -n a; echo -e 'b\\tc'", 0.0, 0, "ab\tc\n"),
    ("sleep infinity", FOR_EVER, 0, ""),
    ("tail -f /dev/null", FOR_EVER, 0, ""),
    ("", 0.0, 0, ""),
    ("if [ $HOME = /root ]; then echo a; else echo b; fi", 0.0, 0, "a\n"),
    ("if false; then echo a; elif test 3 -ge 4; then echo b; else sleep 2; exit 5; fi", 2.0, 5, ""),
    ("if false; then echo a; fi; echo $?", 0.0, 0, "0\n"),
    ('set -e; if [ -z "$NONE" ]; then echo none; fi; [ -n "" ] || echo no; [ a != a ]', 0.0, 1, "none\nno\n"),
    ("echo $HOME $(cat x | tr a b)`date`  # a remark", 0.0, 0, "/root\n"),
    ("if true; then if false; then exit 1; else exit 2; fi; fi", 0.0, 2, ""),
    ("sleep 1\\\n0; exit 3", 10.0, 3, ""),
    ("[ a", 0.0, 2, ""),
    ("mkdir -p /run/sshd; /usr/sbin/sshd -D", FOR_EVER, 0, ""),
]


@pytest.mark.parametrize(("script", "lasts_s", "code", "printed"), SCRIPTS)
def test_a_script(script: str, lasts_s: float, code: int, printed: str) -> None:
    plan = planned(("/bin/sh", "-c", script), (("HOME", "/root"),))
    assert plan is not None
    assert (plan.lasts_s, plan.exit_code, plan.printed(FOR_EVER)) == (lasts_s, code, printed)


@pytest.mark.parametrize(
    "script",
    [
        "cat x | grep y",
        "(echo a)",
        'echo "a',
        "echo a &",
        "if true; then echo a",
        "[ -f /x ]",
        "[ a -lt 3 ]",
        "for i in 1 2; do echo $i; done",
        "while true; do sleep 1; done",
        "until nslookup db; do sleep 1; done",
        "! true",
        "{ echo a; }",
        "expr 1 + 1",
        "seq 2",
        "echo $((1 + 1))",
        "echo ${a:-b}",
        "true; fi",
    ],
)
def test_more_shell_than_is_read_is_nobodys_guess(script: str) -> None:
    assert planned(("sh", "-c", script)) is None


def test_a_program_of_the_container_itself() -> None:
    assert planned(("/bin/sleep", "5")) == Plan(5.0)
    assert planned(("/bin/false",)) == Plan(0.0, 1)
    assert planned(("exit", "3")) == Plan(0.0, 3)
    assert planned(("sh", "-euxo", "pipefail", "-c", "false; echo a")) == Plan(0.0, 1)
    assert planned(("python", "train.py")) is None
    assert planned(("sh", "train.sh")) is None


def test_work_takes_as_long_as_its_pod_is_said_to_run() -> None:
    plan = planned(("sh", "-c", "echo a; sleep 2; python3.11 train.py && echo done; exit 4"))
    assert plan is not None
    assert (plan.lasts_s, plan.works, plan.exit_code) == (2.0, 1, 4)
    assert (plan.printed(10), plan.printed(FOR_EVER)) == ("a\n", "a\ndone\n")
    assert plan.working(60).lasts_s == 62.0


def test_thought_has_an_end() -> None:
    assert planned(("sh", "-c", "a=aaaa; " + "a=$a$a; " * 50)) is None, "words grow no longer than that"
    assert planned(("sh", "-c", "exec " * 5000)) == Plan(0.0)
    assert planned(("sh", "-c", "if " * 5000)) is None
    assert planned(("sh", "-c", "$(" * 5000 + ")" * 5000)) is None
    assert planned(("sh", "-c", '"' + "$(a)" * 5000)) is None
    twice = """x='sh -c "$x"; sh -c "$x"'; sh -c "$x" """
    assert planned(("sh", "-c", twice)) is None, "scripts in scripts go no deeper than that"


WORDS = (
    "&& || $( ${ $(( sleep exit echo while until for do done in if then elif else fi ! ] test true false sh -c set -e"
    " exec a=b 1e9 [ 2>&1 -1"
)
PIECES = st.sampled_from([*"'\"\\$`;&|<>(){}#! \n\t=0a\0é", *[f"{word} " for word in WORDS.split()]])


@given(st.lists(PIECES, max_size=30).map("".join))
def test_no_script_breaks_it(script: str) -> None:
    plan = planned(("sh", "-c", script), (("a", "x y"),))
    assert plan is None or (plan.lasts_s >= 0 and 0 <= plan.exit_code <= 255)
    if plan is not None:
        times = [at for at, _ in plan.said]
        assert times == sorted(times)


@given(st.lists(st.text(max_size=8) | PIECES, max_size=5).map(tuple))
def test_no_arguments_break_it(arguments: tuple[str, ...]) -> None:
    plan = planned(arguments)
    assert plan is None or 0 <= plan.exit_code <= 255
