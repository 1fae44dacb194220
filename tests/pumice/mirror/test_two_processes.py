"""All of Volcano's examples on a server in another process, over a wire that breaks, both sides killed on the way: what
the mirror has in the end is what the server has.
"""

import os
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import httpx
import pytest
import yaml

from pumice.actors.real_clusters.mirror.intake import resources
from pumice.cluster.api.kinds import KINDS
from pumice.config.settings import CHARTS
from pumice.core.objects.metadata import Object
from tests.kit import source
from tests.kit.cutting import cutting
from tests.kit.nodes import node
from tests.kit.serving import Served, free_port, served
from tests.pumice.cli.terminal import pumice

EXAMPLES: Final = source.SHARED / "manifests" / "volcano-examples"
FILES: Final = sorted(EXAMPLES.rglob("*.yaml"))
pytestmark = [
    pytest.mark.skipif(not FILES, reason="no shared/manifests beside the repository"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
]
PATIENCE_S: Final = 150.0
PATIENT: Final = pytest.mark.skipif(
    "PUMICE_TEST_PATIENT" not in os.environ, reason="back-off over a wire that breaks may take minutes"
)
COMPARED: Final = [each for each in resources(CHARTS) if not each.only and "metrics.k8s.io" not in each.path]
OWN: Final = ("resourceVersion", "managedFields", "generation")


class Mirroring:
    """A process that mirrors the server of a kubeconfig, and serves its copy."""

    def __init__(self, folder: Path, config: Path) -> None:
        self.db, self._config, self.port = folder / "mirror.db", config, free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        flags = ["--kubeconfig", self._config, "--db", self.db, "--http", f"127.0.0.1:{self.port}", "--shadow"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pumice", "mirror", *map(str, flags)],
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PUMICE_QUIET": "1"},
        )

    def client(self) -> httpx.Client:
        """To be closed by whoever asks for it."""
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=30.0, trust_env=False)

    def kill(self) -> None:
        """As when the power goes."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def mirroring(folder: Path, config: Path) -> Generator[Mirroring]:
    mirror = Mirroring(folder, config)
    mirror.start()
    try:
        yield mirror
    finally:
        mirror.kill()


def shown(client: httpx.Client) -> dict[str, Object]:
    """All objects of all kinds that are followed, but for what is each server's own and what a mirror leaves out."""
    found: dict[str, Object] = {}
    with client:
        for each in COMPARED:
            for obj in client.get(each.path).raise_for_status().json()["items"]:
                meta = {key: value for key, value in obj["metadata"].items() if key not in OWN}
                found[f"{each.key} {meta.get('namespace', '')}/{meta['name']}"] = {
                    "metadata": meta, "spec": _plain(obj.get("spec")), "status": obj.get("status"),
                }  # fmt: skip
    return found


def _plain(spec: Any) -> Any:
    """Without environments."""
    if isinstance(spec, list):
        items = cast("Sequence[Any]", spec)
        return [_plain(each) for each in items]
    if isinstance(spec, dict):
        fields = cast("Object", spec)
        return {key: _plain(value) for key, value in fields.items() if key not in ("env", "envFrom")}
    return spec


def same(server: Served, mirror: Mirroring) -> dict[str, Object]:
    """Until both show the same."""
    deadline, theirs, ours = time.monotonic() + PATIENCE_S, dict[str, Object](), dict[str, Object]()
    while time.monotonic() < deadline:
        try:
            theirs, ours = shown(server.client()), shown(mirror.client())
        except httpx.HTTPError:
            theirs, ours = {"": Object()}, dict[str, Object]()
        if theirs == ours:
            return ours
        time.sleep(0.5)
    raise AssertionError({name: (theirs.get(name), ours.get(name)) for name in {*theirs, *ours}
                          if theirs.get(name) != ours.get(name)})  # fmt: skip


def submit(server: Served, objects: list[Object]) -> int:
    """How many were taken; some are examples of what is refused."""
    taken = 0
    with server.client() as client:
        for obj in objects:
            taken += client.post(_path(obj), json=obj).is_success if _path(obj) else 0
    return taken


def _path(obj: Object) -> str:
    kind = next(
        (each for each in KINDS.values() if (each.api_version, each.kind) == (obj["apiVersion"], obj["kind"])), None
    )
    if kind is None:
        return ""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    within = f"/namespaces/{obj['metadata'].get('namespace', 'default')}" if kind.namespaced else ""
    return f"{root}{within}/{kind.plural}"


def examples() -> list[Object]:
    found = [obj for file in FILES for obj in yaml.safe_load_all(file.read_text()) if obj]
    return sorted(found, key=lambda obj: obj["kind"] not in ("Queue", "Namespace", "PriorityClass"))


@pytest.mark.parametrize(
    ("flags", "most"),
    [pytest.param((), 400_000, marks=PATIENT), (("--no-scheduler",), 50_000)],
    ids=["scheduled", "nobody schedules"],
)
def test_examples_killed_on_both_sides_over_a_wire_that_breaks(
    flags: tuple[str, ...], most: int, tmp_path: Path
) -> None:
    """A connection lasts for `most` bytes at most: a list must come through at last."""
    objects = examples()
    half = len(objects) // 2
    with (
        served(tmp_path, "--default-duration", "2s", *flags) as server,
        cutting(server.port, seed=7, least=5_000, most=most) as wire,
        mirroring(tmp_path, server.kubeconfig(wire.port)) as mirror,
    ):
        submit(server, [node(f"big-{number}", cpu="64", memory="256Gi", gpus=8) for number in range(3)])
        assert submit(server, objects[:half]) > half // 2
        same(server, mirror)
        mirror.kill()
        submit(server, objects[half:])
        mirror.start()
        same(server, mirror)
        server.kill()
        mirror.kill()
        mirror.start()
        server.start()
        submit(server, [{**obj, "metadata": {**obj["metadata"], "name": f"again-{number}"}}
                        for number, obj in enumerate(objects[:half]) if obj["kind"] == "Job"])  # fmt: skip
        ours = same(server, mirror)
        mirror.kill()
        assert wire.cuts
    assert {name.partition(" ")[0] for name in ours} >= {"Job", "Node", "Pod", "PodGroup", "Queue"}
    assert pumice("journal", mirror.db, "--check", "-o", "json").json["whole"]
    said = pumice("replay", mirror.db, "--verify", "-o", "json")
    assert said.code == 0, said.out
    if "--no-scheduler" in flags:
        assert (said.json["agreement"]["decisions"], said.json["agreement"]["share"]) == (0, None)
    else:
        assert said.json["agreement"]["decisions"] > 20
