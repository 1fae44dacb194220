"""What the containers of a pod do: each one's command, with the variables that the kubelet gives it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import dropwhile, takewhile
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final

from pumice.cluster.kube.commands.plans import AT_ITS_END, FOR_EVER, LONGEST_S, MOST_PRINTED, Plan
from pumice.cluster.kube.commands.programs import (
    NOT_FOUND,
    QUIET,
    SHELLS,
    STAYS,
    echoed,
    exit_code_of,
    has_flag,
    is_server,
    is_work,
    reckoned,
    span_s,
    waits_for_input,
)
from pumice.cluster.kube.commands.scripts import DEEPEST, AndOr, For, If, Lines, Node, Not, Simple, While, parsed
from pumice.cluster.kube.commands.shell_words import SCRIPT, TEXT, VARIABLE, NotUnderstoodError, Word, WordPart
from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.whole_numbers import whole_number

# --- A command carried out in thought, on a clock of its own: from arguments and variables to a plan. What is known:
# `sleep`, `exit`, `true`, `false`, `echo`, `seq`, `test`, a shell with `-c`, and the tables in `programs`: what an
# image has and prints nothing that matters, what stays, and what does the work of its pod. Another program ends with
# 127 where a shell is asked for it; what it does when it is asked for directly nobody here knows.

# --- What `test` and `[` come to, as far as texts and numbers go (source: POSIX). Of files nothing is known here.

_TEXTS: Final[dict[str, Callable[[str, str], bool]]] = {"=": eq, "==": eq, "!=": ne}
_NUMBERS: Final[dict[str, Callable[[int, int], bool]]] = {
    "-eq": eq, "-ne": ne, "-lt": lt, "-le": le, "-gt": gt, "-ge": ge,
}  # fmt: skip


def judged(name: str, arguments: Sequence[str]) -> int:
    """The exit code of `test …` or `[ … ]`. Raises NotUnderstoodError for what nobody here can know."""
    words = list(arguments)
    if name == "[" and (not words or words.pop() != "]"):
        return 2
    return 0 if _holds(words) else 1


def _holds(words: Sequence[str]) -> bool:
    match words:
        case []:
            return False
        case [text]:
            return bool(text)
        case [left, sign, right] if sign in _TEXTS:
            return _TEXTS[sign](left, right)
        case [left, sign, right] if sign in _NUMBERS:
            return _NUMBERS[sign](_number(left), _number(right))
        case ["!", *rest]:
            return not _holds(rest)
        case ["-n", text]:
            return bool(text)
        case ["-z", text]:
            return not text
        case _:
            raise NotUnderstoodError


def _number(text: str) -> int:
    number = whole_number(text.strip())
    if number is None:
        raise NotUnderstoodError
    return number


# ---

MOST_STEPS: Final = 2_000
"""Commands that one container carries out in thought; one that has not ended then runs for ever."""
LONGEST_WORD: Final = 65_536
_BLANKS: Final = re.compile(r"\s+")
_CUT: Final = "\0"

Variables = tuple[tuple[str, str], ...]


class _Ended(Exception):  # noqa: N818 - no error: the script is over
    """With this exit code; `for_ever`: never."""

    def __init__(self, code: int, *, for_ever: bool = False) -> None:
        super().__init__(code)
        self.code = code
        self.for_ever = for_ever


@lru_cache(maxsize=512)
def planned(arguments: tuple[str, ...], variables: Variables = ()) -> Plan | None:
    """What a container does that is started with these; None where nobody here knows."""
    run = _Run(dict(variables))
    for_ever = False
    try:
        code = run.started(arguments)
    except NotUnderstoodError:
        return None
    except _Ended as ended:
        code, for_ever = ended.code, ended.for_ever
    return Plan(FOR_EVER if for_ever else run.time_s, code, tuple(run.said), 0 if for_ever else run.works)


class _Run:
    def __init__(self, variables: Mapping[str, str]) -> None:
        self.time_s = 0.0
        self.works = 0
        self.said: list[tuple[float, str]] = []
        self._room = MOST_PRINTED
        self._steps = 0
        self._depth = 0
        self._status = 0
        self._strict = False
        self._variables = dict(variables)

    # --- programs

    def started(self, arguments: Sequence[str]) -> int:
        """What the container itself is. Raises NotUnderstoodError for a program that nobody here knows."""
        if not arguments:
            raise NotUnderstoodError
        code = self._program(arguments[0].rpartition("/")[2], arguments[1:])
        if code is None or is_work(arguments[0]):
            raise NotUnderstoodError
        return code

    def _called(self, words: Sequence[str]) -> int:
        program = [*dropwhile("exec".__eq__, words)]
        if not program:
            return 0
        if len(program) < len(words):
            raise _Ended(self._called(program))
        code = self._program(words[0].rpartition("/")[2], words[1:])
        if code is None:
            self._print(f"sh: {words[0]}: not found\n")
            return NOT_FOUND
        return code

    def _program(self, name: str, arguments: Sequence[str]) -> int | None:
        """The exit code; None for a program that nobody here knows."""
        match name:
            case "sleep":
                return self._sleep(arguments)
            case "exit":
                raise _Ended(exit_code_of(arguments[0]) if arguments else self._status)
            case "false":
                return 1
            case "echo":
                return self._echo(arguments)
            case "test" | "[":
                return judged(name, arguments)
            case _ if name in STAYS and not STAYS[name].isdisjoint(arguments):
                raise _Ended(0, for_ever=True)
            case _ if is_server(name, arguments):
                raise _Ended(0, for_ever=True)
            case _ if waits_for_input([name, *arguments]):
                return 0  # nothing comes in
            case _ if name in SHELLS:
                return self._shell(arguments)
            case "seq":
                return self._seq(arguments)
            case "expr":
                return self._expr(arguments)
            case _ if is_work(name):
                self.works += 1
                return 0
            case "set":
                self._strict = "+e" not in arguments and (self._strict or any(has_flag(one, "e") for one in arguments))
                return 0
            case _:
                return 0 if name in QUIET else None

    def _sleep(self, arguments: Sequence[str]) -> int:
        spans = [span_s(each) for each in arguments]
        wrong = next((each for each, span in zip(arguments, spans, strict=True) if span is None), None)
        if wrong is not None or not spans:
            self._print(f"sleep: invalid time interval '{wrong}'\n" if spans else "sleep: missing operand\n")
            return 1
        self.time_s += sum(span for span in spans if span is not None)
        if self.time_s > LONGEST_S:
            raise _Ended(0, for_ever=True)
        return 0

    def _seq(self, arguments: Sequence[str]) -> int:
        numbers = [whole_number(each) for each in arguments]
        if len(numbers) not in (1, 2) or None in numbers:
            raise NotUnderstoodError
        first, last = (numbers[0] or 0, numbers[1] or 0) if len(numbers) > 1 else (1, numbers[0] or 0)
        self._print("".join([f"{each}\n" for each in range(first, min(last, first + MOST_STEPS) + 1)]))
        return 0

    def _expr(self, arguments: Sequence[str]) -> int:
        value = reckoned(arguments)
        if value is None:
            raise NotUnderstoodError
        self._print(f"{value}\n")
        return int(not value)

    def _echo(self, arguments: Sequence[str]) -> int:
        self._print(echoed(arguments))
        return 0

    def _shell(self, arguments: Sequence[str]) -> int | None:
        """`sh [-e…] -c SCRIPT [NAME [ARGUMENT…]]`; None for a script in a file."""
        given = [*takewhile(lambda each: each[:1] in ("-", "+") or each == "pipefail", arguments)]
        flags = len(given)
        if not any(has_flag(each, "c") for each in given) or flags == len(arguments):
            return None
        strict, variables = self._strict, self._variables
        self._strict = any(has_flag(each, "e") for each in given)
        self._variables = variables | {str(place): text for place, text in enumerate(arguments[flags + 1 :])}
        try:
            return self.script(arguments[flags])
        finally:
            self._strict, self._variables = strict, variables

    def _print(self, text: str) -> None:
        if text and self._room > 0:
            self.said.append((AT_ITS_END if self.works else self.time_s, text[: self._room]))
            self._room -= len(text)

    # --- scripts

    def script(self, text: str) -> int:
        """The exit code of another shell."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise NotUnderstoodError
        try:
            return self._node(parsed(text))
        except _Ended as ended:
            if ended.for_ever:
                raise
            return ended.code
        finally:
            self._depth -= 1

    def _node(self, node: Node, *, tested: bool = False) -> int:
        """`tested`: a failure ends nothing, not even under `set -e`."""
        match node:
            case Simple():
                self._status = self._simple(node)
                if self._strict and self._status and not tested:
                    raise _Ended(self._status)
            case AndOr():
                self._and_or(node, tested=tested)
            case Lines():
                for each in node.nodes:
                    self._node(each, tested=tested)
            case Not():
                self._status = int(self._node(node.command, tested=True) == 0)
            case If():
                self._if(node, tested=tested)
            case While():
                self._while(node, tested=tested)
            case For():
                for value in self._fields(node.words):
                    self._step()
                    self._variables[node.name] = value
                    self._node(node.body, tested=tested)
        return self._status

    def _and_or(self, node: AndOr, *, tested: bool) -> None:
        commands = [("", node.first), *node.rest]
        for place, (operator, each) in enumerate(commands):
            if operator == ("||" if self._status == 0 else "&&"):
                continue
            self._node(each, tested=tested or place < len(commands) - 1)

    def _if(self, node: If, *, tested: bool) -> None:
        body = next((body for condition, body in node.branches if self._node(condition, tested=True) == 0), None)
        self._status = 0
        self._node(node.otherwise if body is None else body, tested=tested)

    def _while(self, node: While, *, tested: bool) -> None:
        status = 0
        while (self._node(node.condition, tested=True) == 0) != node.until:
            status = self._node(node.body, tested=tested)
        self._status = status

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise _Ended(0, for_ever=True)

    def _simple(self, command: Simple) -> int:
        self._step()
        words = self._fields(command.words)
        given = {name: self._text(word) for name, word in command.assigned}
        if not words:
            self._variables.update(given)
            return 0
        if words[0] == "export":
            self._variables |= {name: value for name, cut, value in (each.partition("=") for each in words[1:]) if cut}
        said, variables = len(self.said), self._variables
        if given:
            self._variables = variables | given
        try:
            return self._called(words)
        finally:
            if given:
                self._variables = variables
            if command.silent:
                del self.said[said:]

    # --- words

    def _fields(self, words: Sequence[Word]) -> list[str]:
        """Words filled in; what is not quoted is split at blanks, and gone when it is empty."""
        found: list[str] = []
        for word in words:
            text = self._text(word, split=True)
            fields = [each for each in text.split(_CUT) if each]
            found += fields or [""] * any(part.quoted for part in word.parts)
        return found

    def _text(self, word: Word, *, split: bool = False) -> str:
        texts = [self._part(part) for part in word.parts]
        if sum(map(len, texts)) > LONGEST_WORD:
            raise NotUnderstoodError
        if split:
            parts = zip(word.parts, texts, strict=True)
            texts = [text if part.kind == TEXT or part.quoted else _BLANKS.sub(_CUT, text) for part, text in parts]
        return "".join(texts)

    def _part(self, part: WordPart) -> str:
        if part.kind == VARIABLE:
            return str(self._status) if part.text == "?" else self._variables.get(part.text, "")
        return self._printed_by(part.text) if part.kind == SCRIPT else part.text

    def _printed_by(self, script: str) -> str:
        """What programs print that nobody here knows is not known either."""
        kept, variables, room = self.said, dict(self._variables), self._room
        self.said, self._room = [], LONGEST_WORD
        try:
            try:
                self._status = self.script(script)
            except NotUnderstoodError:
                return ""
            return "".join([text for _, text in self.said if not text.endswith(": not found\n")]).rstrip("\n")
        finally:
            self.said, self._variables, self._room = kept, variables, room


# ---

DURATION: Final = "pumice.dev/duration"
EXIT_CODE: Final = "pumice.dev/exit-code"
"""What a pod's annotations say of its run comes before what its containers say."""

SERVICES: Final = {
    "activemq", "adminer", "agnhost", "alertmanager", "apache", "caddy", "cassandra", "chronograf", "clickhouse",
    "clickhouse-server", "cockroach", "consul", "coredns", "couchbase", "couchdb", "drupal", "echo-server",
    "echoserver", "elasticsearch", "emqx", "envoy", "etcd", "fluent-bit", "fluentd", "ghost", "gitea", "grafana",
    "haproxy", "hello-app", "http-echo", "httpbin", "httpd", "influxdb", "jaeger", "jenkins", "joomla", "kafka",
    "keycloak", "kibana", "kong", "kube-proxy", "logstash", "loki", "mariadb", "mediawiki", "memcached", "metabase",
    "minio", "mongo", "mongodb", "mosquitto", "mysql", "nats", "neo4j", "nextcloud", "nexus3", "nginx",
    "nginx-slim", "nginx-unprivileged", "node-exporter", "ollama", "openresty", "opensearch", "openssh-server",
    "pause", "percona", "phpmyadmin", "podinfo", "postgres", "postgresql", "prometheus", "pulsar", "pushgateway",
    "qdrant", "rabbitmq", "redis", "redis-stack-server", "redmine", "registry", "rethinkdb", "serve_hostname",
    "solr", "sonarqube", "squid", "telegraf", "tomcat", "traefik", "tritonserver", "valkey", "varnish", "vault",
    "vllm-openai", "weaviate", "whoami", "wordpress", "zookeeper",
}  # fmt: skip
"""Images that serve until they are stopped, when nothing else is asked of them, whatever the pod's restartPolicy is."""
SHELL_IMAGES: Final = {
    "almalinux", "alpine", "amazonlinux", "archlinux", "bash", "busybox", "centos", "debian", "fedora", "leap",
    "oraclelinux", "rockylinux", "tumbleweed", "ubi-minimal", "ubuntu",
}  # fmt: skip
"""Images whose program is a shell: without a command it reads an empty input and ends."""

_REFERENCE: Final = re.compile(r"\$(\$|\(([^()\s]+)\))")
_FIELD: Final = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")


def annotated(pod: Object) -> bool:
    """Whether annotations of the pod say how it runs."""
    annotations = text_map(pod["metadata"].get("annotations"))
    return DURATION in annotations or EXIT_CODE in annotations


def plan_of(pod: Object, container: Object) -> Plan | None:
    """What the container does; None where its command does not say, or is of a program that nobody here knows, or where
    annotations say how the pod runs.
    """
    arguments = [*(container.get("command") or ()), *(container.get("args") or ())]
    if annotated(pod) or not (arguments or _is_shell(container)):
        return None
    if waits_for_input(arguments or ["sh"]) and container.get("stdin"):
        return Plan(FOR_EVER)
    if not arguments:
        return Plan(0.0)
    variables = _variables(pod, container)
    known = dict(variables)
    return planned(tuple([_filled_in(str(each), known) for each in arguments]), variables)


def serves(container: Object) -> bool:
    """Whether its image is one of a service, and nothing else is asked of it."""
    return not _is_asked(container) and _image(container) in SERVICES


def _is_shell(container: Object) -> bool:
    return not _is_asked(container) and _image(container) in SHELL_IMAGES


def _is_asked(container: Object) -> bool:
    return bool(container.get("command") or container.get("args"))


def _image(container: Object) -> str:
    """The last word of an image's name, without tag and digest."""
    return str(container.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0]


def heeds(container: Object) -> bool:
    """Whether it ends soon when it is sent SIGTERM. The first process of a container ignores that signal unless it has
    a handler for it, as servers have; a shell and `sleep` have none.
    """
    if serves(container):
        return True
    words: list[Any] = [*(container.get("command") or []), *(container.get("args") or []), ""]
    program, *arguments = map(str, words)
    return is_server(program.rpartition("/")[2], arguments)


def has_commands(spec: Object) -> bool:
    """Return whether any container says what it is to do, or is known to be a shell."""
    for group in ("containers", "initContainers"):
        for each in spec.get(group) or ():
            if _is_asked(each) or _is_shell(each):
                return True
    return False


def _variables(pod: Object, container: Object) -> Variables:
    spec = section(pod, "spec")
    known = {"HOSTNAME": str(spec.get("hostname") or pod["metadata"]["name"])}
    for each in container.get("env") or ():
        source = section(section(each, "valueFrom"), "fieldRef").get("fieldPath")
        value = _field(pod, source) if source else _filled_in(str(each.get("value") or ""), known)
        known[str(each.get("name"))] = value
    return tuple(known.items())


def _field(pod: Object, path: str) -> str:
    """Of the downward API; empty for what is not known here."""
    meta: Object = pod["metadata"]
    match = _FIELD.fullmatch(path)
    if match is not None:
        return text_map(meta.get(match[1])).get(match[2], "")
    where, _, name = path.partition(".")
    known = {"metadata": meta, "spec": section(pod, "spec"), "status": section(pod, "status")}
    value = known.get(where, {}).get(name)
    return value if isinstance(value, str) else ""


def _filled_in(text: str, variables: dict[str, str]) -> str:
    """`$(NAME)` is the value of a variable, if there is one; `$$` a dollar (source: Kubernetes' `expansion`)."""
    return _REFERENCE.sub(
        lambda match: "$" if match[1] == "$" else variables.get(match[2], match[0]),
        text,
    )
