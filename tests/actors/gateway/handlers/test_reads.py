"""GET: objects, lists, pages, forms."""

from typing import Any

import pytest

from pumice.actors.gateway.listings import MOST
from pumice.actors.gateway.problems import ApiError
from pumice.actors.gateway.request.selection import named_object, selection
from pumice.cluster.api.kinds import KINDS
from tests.actors.gateway.rig import PODS, QUEUES, pod_of, serving

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"

pytestmark = pytest.mark.anyio


def names(listing: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in listing["items"]]


async def test_an_object_and_a_list() -> None:
    async with serving() as web:
        (made,) = await web.create_pods("a")
        assert await web.get(f"{PODS}/a") == made
        listing = await web.get(PODS)
        assert (listing["kind"], listing["apiVersion"]) == ("PodList", "v1")
        assert listing["items"] == [made]
        assert int(listing["metadata"]["resourceVersion"]) >= int(made["metadata"]["resourceVersion"])
        assert names(await web.get(QUEUES)) == ["default", "root"]


async def test_selectors() -> None:
    async with serving() as web:
        await web.create_pods("a", "b", app="x")
        await web.create_pods("c", app="y")
        await web.create_pods("d")
        assert names(await web.get(f"{PODS}?labelSelector=app%3Dx")) == ["a", "b"]
        assert names(await web.get(f"{PODS}?labelSelector=app+in+(y),app!%3Dx")) == ["c"]
        assert names(await web.get(f"{PODS}?labelSelector=!app")) == ["d"]
        assert names(await web.get("/api/v1/pods?fieldSelector=metadata.name%3Dc")) == ["c"]
        assert names(await web.get(f"{PODS}?fieldSelector=spec.schedulerName!%3Dnobody")) == []
        assert names(await web.get(f"{PODS}?fieldSelector=status.phase%3DPending,metadata.namespace%3Ddefault")) == [
            "a", "b", "c", "d",
        ]  # fmt: skip
        refused = await web.send("GET", f"{PODS}?fieldSelector=spec.foo%3D1", code=400)
        assert "field label not supported: spec.foo" in refused["message"]
        assert (await web.send("GET", f"{PODS}?labelSelector=a%3D%3D%3D", code=400))["reason"] == "BadRequest"


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("reason=a\\,b,reason!=c", [("a,b", True), ("c", False)]),
        ("reason=a\\=b\\\\", [("a=b\\", True)]),
        (r"reason==a\\\,b", [(r"a\,b", True)]),
        (r"reason=\\\\,,reason= x", [(r"\\", True), (" x", True)]),
    ],
)
def test_field_selector_is_unescaped_from_left_to_right(text: str, terms: list[tuple[str, bool]]) -> None:
    made = selection(KINDS["Event"], "", "", text)
    assert [(term.value, term.equal) for term in made.fields] == terms


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("reason=a!=b", "unescaped character in value: 61"),
        ("reason=a\\b", "invalid escape sequence: \\b"),
        ("reason=a\\", "invalid escape sequence: \\"),
        (" reason=a", "field label not supported:  reason"),
        ("reason", "invalid selector: 'reason'; can't understand 'reason'"),
    ],
)
def test_field_selector_that_kubernetes_refuses_is_refused(text: str, why: str) -> None:
    with pytest.raises(ApiError) as refused:
        selection(KINDS["Event"], "", "", text)
    assert refused.value.refused.message.endswith(why)
    assert named_object(text) == ""


async def test_a_driver_finds_the_slices_of_its_node() -> None:
    slices = "/apis/resource.k8s.io/v1/resourceslices"
    async with serving() as web:
        for name, driver, node in (("s", "a.io", "n0"), ("t", "a.io", "n1"), ("u", "b.io", "n0")):
            spec = {
                "driver": driver,
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            }
            made = {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": name},
                "spec": spec,
            }
            await web.send("POST", slices, made, code=201)
        assert names(await web.get(f"{slices}?fieldSelector=spec.driver%3Da.io,spec.nodeName%3Dn0")) == ["s"]


async def test_pages_are_of_one_moment() -> None:
    async with serving() as web:
        await web.create_pods(*"abcde")
        first = await web.get(f"{PODS}?limit=2")
        assert (names(first), first["metadata"]["remainingItemCount"]) == (["a", "b"], 3)
        await web.send("DELETE", f"{PODS}/c")
        await web.create_pods("bb")
        second = await web.get(f"{PODS}?limit=2&continue={first['metadata']['continue']}")
        assert names(second) == ["c", "d"]
        assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        last = await web.get(f"{PODS}?limit=2&continue={second['metadata']['continue']}")
        assert (names(last), last["metadata"].get("continue")) == (["e"], None)
        for token, found in ((first, ["c", "d"]), (second, ["e"])):  # as after an answer that broke off on the way
            assert names(await web.get(f"{PODS}?limit=2&continue={token['metadata']['continue']}")) == found
        for _ in range(MOST):
            await web.get(f"{PODS}?limit=1")
        expired = await web.send("GET", f"{PODS}?limit=2&continue={first['metadata']['continue']}", code=410)
        assert expired["reason"] == "Expired"
        await web.send("GET", f"{PODS}?continue=nonsense", code=400)
        again = await web.get(f"{PODS}?limit=1")
        await web.send("GET", f"/api/v1/pods?limit=1&continue={again['metadata']['continue']}", code=400)


async def test_a_page_of_what_is_selected() -> None:
    async with serving() as web:
        await web.create_pods("a", "c", "e", app="x")
        await web.create_pods("b", "d")
        first = await web.get(f"{PODS}?limit=2&labelSelector=app")
        assert names(first) == ["a", "c"]
        assert "remainingItemCount" not in first["metadata"]
        rest = await web.get(f"{PODS}?limit=2&labelSelector=app&continue={first['metadata']['continue']}")
        assert names(rest) == ["e"]


async def test_revisions() -> None:
    async with serving() as web:
        await web.create_pods("a")
        now = int((await web.get(PODS))["metadata"]["resourceVersion"])
        for query in ("resourceVersion=0", f"resourceVersion={now}&resourceVersionMatch=NotOlderThan"):
            assert names(await web.get(f"{PODS}?{query}")) == ["a"]
        assert names(await web.get(f"{PODS}?resourceVersion={now}&resourceVersionMatch=Exact")) == ["a"]
        await web.send("GET", f"{PODS}?resourceVersion=1&resourceVersionMatch=Exact", code=410)
        await web.send("GET", f"{PODS}?resourceVersionMatch=Exact", code=422)
        await web.send("GET", f"{PODS}?resourceVersion=x", code=422)
        await web.send("GET", f"{PODS}?sendInitialEvents=true", code=422)


async def test_a_list_that_is_too_old_goes_on_as_things_are_by_then(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as web:
        await web.create_pods("a", "b", "c", "d")
        first = await web.get(f"{PODS}?limit=2")
        monkeypatch.setattr("pumice.actors.gateway.listings.AGE_S", -1.0)
        await web.create_pods("aa", "bb")
        refused = await web.send("GET", f"{PODS}?limit=2&continue={first['metadata']['continue']}", code=410)
        assert refused["reason"] == "Expired"
        monkeypatch.undo()
        second = await web.get(f"{PODS}?limit=2&continue={refused['metadata']['continue']}")
        assert (names(second), second["metadata"]["remainingItemCount"]) == (["bb", "c"], 1)
        assert second["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
        rest = await web.get(f"{PODS}?limit=2&continue={second['metadata']['continue']}")
        assert (names(rest), "continue" in rest["metadata"]) == (["d"], False)


async def test_a_list_as_it_was() -> None:
    async with serving() as web:
        await web.create_pods("a", "b", "c")
        was = await web.get(PODS)
        then = int(was["metadata"]["resourceVersion"])
        merge = {"content-type": "application/merge-patch+json"}
        for color in ("red", "blue"):
            await web.send("PATCH", f"{PODS}/b", {"metadata": {"labels": {"color": color}}}, 200, **merge)
        await web.send("DELETE", f"{PODS}/c")
        await web.create_pods("aa")
        assert names(await web.get(PODS)) == ["a", "aa", "b"]
        exact = f"resourceVersion={then}&resourceVersionMatch=Exact"
        for path in (PODS, "/api/v1/pods"):
            assert await web.get(f"{path}?{exact}") == was
        assert names(await web.get(f"{PODS}?{exact}&labelSelector=color")) == []
        first = await web.get(f"{PODS}?resourceVersion={then}&limit=2")
        assert (names(first), first["metadata"]["resourceVersion"]) == (["a", "b"], str(then))
        rest = await web.get(f"{PODS}?limit=2&continue={first['metadata']['continue']}")
        assert (names(rest), rest["metadata"]["resourceVersion"]) == (["c"], str(then))


@pytest.mark.parametrize(("changes", "known"), [(3, True), (9, False)])
async def test_a_list_as_it_was_as_far_as_changes_are_kept(changes: int, known: bool) -> None:
    async with serving(ring_events=4) as web:
        await web.create_pods("a", *(f"p{number}" for number in range(5)))
        was = await web.get(PODS)
        then = was["metadata"]["resourceVersion"]
        for number in range(changes):
            body = {"metadata": {"labels": {"color": str(number)}}}
            await web.send("PATCH", f"{PODS}/a", body, 200, **{"content-type": "application/merge-patch+json"})
        exact = f"{PODS}?resourceVersion={then}&resourceVersionMatch=Exact"
        if known:  # what the first change has met is kept with it
            assert await web.get(exact) == was
        else:
            assert (await web.send("GET", exact, code=410))["reason"] == "Expired"


async def test_a_revision_of_the_future(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.actors.gateway.hub.NEWER_PATIENCE_S", 0.05)
    async with serving() as web:
        refused = await web.send("GET", f"{PODS}?resourceVersion={2**62}", code=504)
        assert refused["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_a_table() -> None:
    async with serving() as web:
        await web.create_pods("a", "b")
        table = await web.get(PODS, accept=TABLE)
        assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
        assert [column["name"] for column in table["columnDefinitions"]][:3] == ["Name", "Ready", "Status"]
        assert [row["cells"][:3] for row in table["rows"]] == [["a", "0/1", "Pending"], ["b", "0/1", "Pending"]]
        assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
        one = await web.get(f"{PODS}/a?includeObject=Object", accept=TABLE)
        assert one["rows"][0]["object"]["kind"] == "Pod"
        assert one["metadata"]["resourceVersion"] == one["rows"][0]["object"]["metadata"]["resourceVersion"]
        await web.send("GET", f"{PODS}?includeObject=All", code=400, accept=TABLE)


async def test_metadata_alone() -> None:
    async with serving() as web:
        (made,) = await web.create_pods("a")
        found = await web.get(PODS, accept=METADATA)
        assert found["kind"] == "PartialObjectMetadataList"
        assert found["items"] == [
            {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}
        ]


async def test_a_large_list_comes_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.actors.gateway.handlers.reads.WHOLE", 2_000)
    async with serving() as web:
        await web.system.submit([*_many(450)])
        answer = await web.http.get(PODS)
        assert answer.headers["transfer-encoding"] == "chunked"
        listing = answer.json()
        assert names(listing) == sorted(f"p{number:03}" for number in range(450))
        assert listing["kind"] == "PodList"
        assert listing["metadata"]["resourceVersion"].isdigit()
        rows = (await web.get(PODS, accept=TABLE))["rows"]
        assert [row["cells"][0] for row in rows] == names(listing)
        page = await web.get(f"{PODS}?limit=400")
        assert page["metadata"]["remainingItemCount"] == 50
        assert names(page) == names(listing)[:400]


def _many(number: int) -> list[dict[str, Any]]:
    return [pod_of(f"p{index:03}", app="many") for index in range(number)]


async def test_what_is_not_there() -> None:
    async with serving() as web:
        missing = await web.send("GET", f"{PODS}/x", code=404)
        assert missing["message"] == 'pods "x" not found'
        assert missing["details"] == {"name": "x", "group": "", "kind": "pods"}
        queue = await web.send("GET", f"{QUEUES}/x", code=404)
        assert queue["message"] == 'queues.scheduling.volcano.sh "x" not found'
        for path in ("/api/v1/nonsense", "/apis/x/v1/y", "/api/v1/pods/a/b/c/d", "/nonsense", "/api/v1/pods/a"):
            assert (await web.send("GET", path, code=404))["kind"] == "Status"
        assert (await web.send("PATCH", PODS, {}, code=405))["reason"] == "MethodNotAllowed"
        assert (await web.http.head(f"{PODS}/x")).status_code == 404
