"""nodegroup against the obvious one: which groups a queue may use, which it likes, and whom it inherits from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.objects.metadata import Object
from pumice.core.plugins.nodegroup import LABEL
from pumice.core.session.reasons import Code
from pumice.core.session.session import Session
from tests.core.kube.sessions import scores, texts
from tests.core.plugins.world import configuration, open_world, task_of
from tests.kit import gang, node, pod, queue

GROUPS = ["a", "b", "c", ""]
NODES = [node("n0"), *(node(f"n{i}", labels={LABEL: group}) for i, group in enumerate(GROUPS, 1))]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NAMES = st.lists(st.sampled_from([*GROUPS, "elsewhere"]), max_size=3)
SIDES: st.SearchStrategy[Object] = st.fixed_dictionaries({}, optional={REQUIRED: NAMES, PREFERRED: NAMES})
AFFINITIES: st.SearchStrategy[Object] = st.fixed_dictionaries(
    {}, optional={"nodeGroupAffinity": SIDES, "nodeGroupAntiAffinity": SIDES}
)


def with_affinity(name: str, affinity: Object | None, parent: str = "") -> Object:
    made = queue(name)
    made["spec"] |= {"parent": parent} if parent else {}
    made["spec"] |= {} if affinity is None else {"affinity": affinity}
    return made


def opened(
    *queues: Object,
    arguments: Object | None = None,
    hierarchy: bool = False,
    used: str = "q",
    fix: tuple[str, ...] = (),
) -> Session:
    option = {"name": "nodegroup", "arguments": arguments or {}, "enableHierarchy": hierarchy}
    return open_world(configuration([option], fix=fix), NODES, list(queues), gang("j", pods=1, queue=used))


def answers(session: Session) -> tuple[list[str], list[float]]:
    task, rows = task_of(session, "j-0"), list(range(len(NODES)))
    [[node_filter]], [[scorer]] = session.points.predicate.rules, session.points.node_order.rules
    return texts(session, node_filter.prepare(session, task)), scores(session, scorer.prepare(session, task), rows)


def plain_refusal(affinity: Object | None, group: str | None, strict: bool, *, mended: bool = False) -> str:
    """predicateFn; `mended`: what is refused stays so."""
    towards, against = (affinity or {}).get("nodeGroupAffinity", {}), (affinity or {}).get("nodeGroupAntiAffinity", {})
    lists = [side.get(which, []) for side in (towards, against) for which in (REQUIRED, PREFERRED)]
    unset = not any(lists)
    if group is None:
        return "" if not strict and unset else "node group label not found"
    if unset:
        return "node group affinity not specified"
    required, preferred, refused, unliked = lists
    good = group in required or group in preferred
    if group in refused:
        good = False
    if group in unliked and not (mended and group in refused):
        good = True
    return "" if good else "node does not satisfy the node group affinity"


def plain_score(affinity: Object | None, group: str | None, ordered: bool) -> float:
    """nodeOrderFn."""
    towards, against = (affinity or {}).get("nodeGroupAffinity", {}), (affinity or {}).get("nodeGroupAntiAffinity", {})
    if group is None:
        return 0.0
    score = 100.0 if group in towards.get(REQUIRED, []) else 0.0
    places = {name: i for i, name in enumerate(towards.get(PREFERRED, []))}
    if group in places:
        score += 50.0 * (len(places) - places[group]) / len(places) if ordered else 50.0
    return -1.0 if group in against.get(PREFERRED, []) else score


@given(affinity=st.one_of(st.none(), AFFINITIES), strict=st.booleans(), ordered=st.booleans(), mended=st.booleans())
def test_nodegroup_is_the_slow_one(affinity: Object | None, strict: bool, ordered: bool, mended: bool) -> None:
    arguments = {"strict": strict, "enablePreferredOrder": ordered}
    fix = ("nodegroup-refusal-counts",) if mended else ()
    refused, liked = answers(opened(with_affinity("q", affinity), arguments=arguments, fix=fix))
    groups = [None, *GROUPS]
    assert refused == [plain_refusal(affinity, group, strict, mended=mended) for group in groups]
    # A list that names a group twice has its place from the last mention and its length without the double.
    assert liked == [plain_score(affinity, group, ordered) for group in groups]


def likes(group: str) -> Object:
    return {"nodeGroupAffinity": {PREFERRED: [group]}}


@pytest.mark.parametrize(
    ("queues", "hierarchy", "admitted"),
    [
        ([("q", None, "p"), ("p", None, ""), ("root", "a", "")], True, "a"),
        ([("q", None, "p"), ("p", "b", ""), ("root", "a", "")], True, "b"),
        ([("q", "c", "p"), ("p", "b", "")], True, "c"),
        ([("q", None, "p"), ("p", "b", "")], False, None),
        ([("q", None, "nobody"), ("root", "a", "")], True, None),
        ([("q", None, "p"), ("p", None, "q")], True, None),
        ([("q", None, ""), ("root", None, "p"), ("p", "a", "")], True, None),
    ],
)
def test_inheritance(queues: list[tuple[str, str | None, str]], hierarchy: bool, admitted: str | None) -> None:
    made = [with_affinity(name, None if group is None else likes(group), parent) for name, group, parent in queues]
    refused, _ = answers(opened(*made, hierarchy=hierarchy))
    assert [group for group, text in zip([None, *GROUPS], refused, strict=True) if not text] == (
        [admitted] if admitted else []
    )


def test_queues_do_not_share_a_search() -> None:
    groups = [gang("j", pods=1, queue="q"), gang("k", pods=1, queue="r")]
    session = open_world(configuration(["nodegroup"]), NODES, queue("q"), queue("r"), *groups)
    [[node_filter]] = session.points.predicate.rules
    kind = node_filter.reads.kind
    assert kind is not None
    assert kind(task_of(session, "j-0")) != kind(task_of(session, "k-0"))


def test_a_task_without_a_job_goes_nowhere() -> None:
    session = open_world(configuration(["nodegroup"]), NODES, queue("q"), pod("stray"))
    [[node_filter]], [[scorer]] = session.points.predicate.rules, session.points.node_order.rules
    stray = task_of(session, "stray")
    check = node_filter.prepare(session, stray)
    assert check is not None
    assert texts(session, check) == ["job  not found in session"] * len(NODES)
    assert session.reasons.reasons(check.one(0))[0].code is Code.ERROR
    assert scorer.prepare(session, stray) is None
