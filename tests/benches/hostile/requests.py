"""Requests of at most 64 KiB that ask for as much work as they can, in an order that a seed gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final
from urllib.parse import quote

import msgspec

from tests.benches.hostile import bodies

MOST_BYTES: Final = 64 * 1024
JSON: Final = "application/json"
PODS: Final = f"/api/v1/namespaces/{bodies.NAMESPACE}/pods"
POD: Final = f"{PODS}/stored-000000"
MAPS: Final = f"/api/v1/namespaces/{bodies.NAMESPACE}/configmaps"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"


@dataclass(frozen=True, slots=True)
class HostileRequest:
    """One request; `name` says what is too much about it."""

    name: str
    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def size(self) -> int:
        """Bytes of all of it."""
        return len(self.path) + len(self.body) + sum(len(one) + len(other) for one, other in self.headers.items())


def requests(seed: int) -> list[HostileRequest]:
    """All of them; those that go together stay in their order."""
    groups = [[one] for one in (*_creations(), *_bodies(), *_patches(), *_questions(), *_cut(Random(seed)))]
    groups += [list(pair) for pair in _definitions()]
    groups.append(_in_turn())
    Random(seed).shuffle(groups)
    return [one for group in groups for one in group]


def _json(name: str, method: str, path: str, body: Any, media: str = JSON) -> HostileRequest:
    return HostileRequest(name, method, path, msgspec.json.encode(body), {"content-type": media})


def _creations() -> Iterator[HostileRequest]:
    groups = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{bodies.NAMESPACE}/podgroups"
    jobs = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{bodies.NAMESPACE}/jobs"
    for path, known in ((PODS, bodies.PODS), (groups, bodies.GROUPS), (jobs, bodies.JOBS)):
        for name, made in known.items():
            yield _json(name, "POST", path, made(_plain(name)))
    for name, (path, made) in bodies.CLUSTER.items():
        yield _json(name, "POST", path, made(_plain(name)))
    data = {f"k{number}": "v" for number in range(5_000)}
    for media in (JSON, "application/yaml"):
        yield _json(f"data as {media}", "POST", MAPS, {"metadata": {"generateName": "d-"}, "data": data}, media)


def _plain(name: str) -> str:
    return "fuzz-" + "".join(letter if letter.isalnum() else "-" for letter in name.lower())


def _bodies() -> Iterator[HostileRequest]:
    """Of every media type: deep, wide, and not what it says."""
    aliases = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
    )
    texts = {
        "brackets": "[" * 60_000, "keys": '{"a":' * 12_000, "list of lists": "[" + "[]," * 20_000 + "[]]",
        "yaml brackets": "a: " + "[" * 60_000, "yaml dashes": "- " * 30_000, "yaml wide": "a: [" + "1," * 30_000 + "1]",
        "yaml aliases": aliases, "yaml merges": "a: &a {b: 1}\n" + "".join(f"c{n}: {{<<: *a}}\n" for n in range(2_500)),
        "yaml anchors": "a: [" + "".join(f"&a{n} x," for n in range(7_000)) + "]",
        "yaml tags": "a: " + "!!str " * 9_000,
        "digits": '{"a":' + "9" * 60_000 + "}", "quotes": '"' * 60_000, "spaces": " " * 60_000 + "x",
        "lines": "\n" * 60_000, "escapes": '"' + "\\u00e9" * 10_000 + '"',
    }  # fmt: skip
    for name, text in texts.items():
        for media in (JSON, "application/yaml"):
            yield HostileRequest(f"{name} as {media}", "POST", PODS, text.encode(), {"content-type": media})
    protobuf = "application/vnd.kubernetes.protobuf"
    head = b"k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12"
    for name, raw in {"protobuf fields": b"\x08\x01" * 30_000, "protobuf depth": b"\x0a\x7f" * 30_000}.items():
        yield HostileRequest(name, "POST", PODS, head + _varint(len(raw)) + raw, {"content-type": protobuf})
    containers = b"".join(b"\x12\x03\x0a\x01c" for _ in range(12_000))
    spec = b"\x12" + _varint(len(containers)) + containers
    yield HostileRequest(
        "protobuf containers", "POST", PODS, head + _varint(len(spec)) + spec, {"content-type": protobuf}
    )


def _varint(number: int) -> bytes:
    found = b""
    while number > 0x7F:
        found, number = found + bytes([number & 0x7F | 0x80]), number >> 7
    return found + bytes([number])


def _patches() -> Iterator[HostileRequest]:
    labels = {f"l{number}": "v" for number in range(4_500)}
    operations: dict[str, list[Any]] = {
        "additions": [{"op": "add", "path": f"/metadata/labels/x{n}", "value": "v"} for n in range(1_000)],
        "removals": [{"op": "remove", "path": "/metadata/labels/app"}] * 1_300,
        "copies": [{"op": "copy", "from": "/metadata", "path": "/metadata/labels/x"}] * 800,
        "doublings": [{"op": "copy", "from": "/spec", "path": f"/spec/s{n}"} for n in range(24)],
        "insertions": [{"op": "add", "path": "/spec/containers/0", "value": {"name": f"c{n}"}} for n in range(900)],
        "tests": [{"op": "test", "path": "/kind", "value": "Pod"}] * 1_200,
    }
    for name, listed in operations.items():
        yield _json(f"patch: {name}", "PATCH", POD, listed, "application/json-patch+json")
    containers = [{"name": f"c{number}", "image": "i"} for number in range(1_500)]
    orders: dict[str, Any] = {
        "labels": {"metadata": {"labels": labels}},
        "containers": {"spec": {"containers": containers}},
        "order": {"spec": {"$setElementOrder/containers": containers[:700], "containers": containers[:700]}},
        "nulls": {"metadata": {"annotations": dict.fromkeys(labels)}},
        "depth": {"spec": bodies.nested(400, lists=False)},
    }
    for name, body in orders.items():
        for form in ("merge", "strategic-merge"):
            yield _json(f"{form} patch: {name}", "PATCH", POD, body, f"application/{form}-patch+json")
        path = f"{POD}?fieldManager=fuzz&force=true"
        whole = {"apiVersion": "v1", "kind": "Pod", **body}
        yield _json(f"apply patch: {name}", "PATCH", path, whole, "application/apply-patch+yaml")


def _in_turn() -> list[HostileRequest]:
    """Applies that each take the fields of the one before away, change them, or want those of another."""

    def applied(name: str, letter: str, value: str = "", manager: str = "fuzz") -> HostileRequest:
        path = f"{MAPS}/in-turn?fieldManager={manager}"
        data = {f"{letter}{number:x}": value for number in range(5_000 if value else 5_500)}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "in-turn"}, "data": data}
        return _json(f"apply patch: {name}", "PATCH", path, body, "application/apply-patch+yaml")

    return [
        applied("fields", "a"),
        applied("other fields", "b"),
        applied("the first again", "a"),
        applied("other values", "a", "x"),
        applied("those of another", "a", "y", "other"),
    ]


def _questions() -> Iterator[HostileRequest]:
    """Lists whose selectors, pages and forms are too much; nobody is shown more than a page."""
    selectors = {
        "requirements": ",".join(f"a!=b{number}" for number in range(4_000)),
        "as many as may be": ",".join(f"app!=b{number}" for number in range(250)),
        "values": f"app in ({','.join(f'v{number}' for number in range(8_000))})",
        "commas": "," * 20_000, "brackets": "(" * 20_000, "spaces": "a=" + " " * 19_000 + "!",
    }  # fmt: skip
    for name, text in selectors.items():
        yield HostileRequest(f"selector: {name}", "GET", f"{PODS}?limit=500&labelSelector={quote(text)}")
    fields = {"terms": ",".join(f"metadata.name!=p{n}" for n in range(1_500)), "escapes": "\\" * 19_000}
    for name, text in fields.items():
        yield HostileRequest(f"fields: {name}", "GET", f"{PODS}?limit=500&fieldSelector={quote(text)}")
    yield HostileRequest("all pods", "GET", PODS)
    yield HostileRequest("all pods as a table", "GET", PODS, headers={"accept": TABLE})
    yield HostileRequest("all nodes as a table", "GET", "/api/v1/nodes", headers={"accept": TABLE})
    yield HostileRequest("a forged page", "GET", f"{PODS}?continue={'A' * 40_000}")
    yield HostileRequest(
        "names in the query", "GET", f"{PODS}?limit=1&" + "&".join(f"q{number}=1" for number in range(6_000))
    )
    yield HostileRequest("forms", "GET", POD, headers={"accept": ",".join(f"text/x{n};q=0.{n}" for n in range(3_000))})
    yield HostileRequest("slashes", "GET", "/api/v1/" + "a/" * 28_000)
    yield HostileRequest("percents", "GET", "/api/v1/" + "%41" * 18_000)
    yield HostileRequest("a long name", "GET", f"{PODS}/{'x' * 60_000}")
    yield HostileRequest("metrics", "GET", "/metrics")
    yield HostileRequest("a selection that is empty", "DELETE", f"{PODS}?labelSelector=app%3Dnobody")
    yield HostileRequest("openapi", "GET", "/openapi/v3/api/v1")


def _definitions() -> Iterator[tuple[HostileRequest, ...]]:
    for number, (name, (schema, value)) in enumerate(bodies.DEFINED.items()):
        plural = f"fuzz{number}"
        made = _json(f"definition: {name}", "POST", CRDS, bodies.definition(plural, schema))
        body = _custom(plural.capitalize(), {"a": value})
        yield made, _json(f"defined: {name}", "POST", f"/apis/fuzz.dev/v1/{plural}", body)
    patterns = {f"p{n}": {"type": "string", "pattern": f"\\pL{{{900 + n % 100}}}"} for n in range(900)}
    bad = bodies.definition("bad", {"type": "object", "properties": patterns})
    yield (_json("definition: bad patterns", "POST", CRDS, bad),)
    columns = [{"name": f"C{n}", "type": "string", "jsonPath": "." * 30 + "a"} for n in range(500)]
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    wide = bodies.definition("wide", anything, additionalPrinterColumns=columns)
    path = "/apis/fuzz.dev/v1/wide"
    yield (
        _json("definition: columns", "POST", CRDS, wide),
        _json("defined: depth", "POST", path, _custom("Wide", bodies.nested(60, lists=False))),
        HostileRequest("defined: as a table", "GET", path, headers={"accept": TABLE}),
    )


def _custom(kind: str, spec: Any) -> dict[str, Any]:
    return {"apiVersion": "fuzz.dev/v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}


def _cut(chance: Random) -> Iterator[HostileRequest]:
    """Some of the others, with bytes that have changed."""
    whole = [one for one in (*_creations(), *_bodies(), *_patches()) if one.body]
    for one in chance.sample(whole, 30):
        body = bytearray(one.body)
        for _ in range(chance.randint(1, 20)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        yield HostileRequest(f"damaged: {one.name}", one.method, one.path, bytes(body), one.headers)
