"""The example extender, asked by `pumice decide` as it stands in examples/."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit import source
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue
from tests.pumice.cli.terminal import pumice

EXAMPLE = source.ROOT / "examples" / "extender"


@pytest.fixture
def config(tmp_path: Path) -> Iterator[str]:
    """The configuration of the example, with the port on which it listens."""
    spec = importlib.util.spec_from_file_location("extender_example", EXAMPLE / "server.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.serve(0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        text = (EXAMPLE / "scheduler.conf").read_text().replace("8713", str(server.server_address[1]))
        (tmp_path / "scheduler.conf").write_text(text)
        yield str(tmp_path / "scheduler.conf")
        server.shutdown()
        thread.join()


def decided(tmp_path: Path, config: str, *nodes: dict[str, Any]) -> dict[str, Any]:
    """What `pumice decide` says of a pod that would like to be in zone b."""
    wanting = pod("p", group="g", annotations={"example.com/zone": "b"})
    objects = [*nodes, queue("default"), pod_group("g"), wanting]
    (tmp_path / "objects.yaml").write_text(yaml.safe_dump_all(objects))
    found: dict[str, Any] = pumice("decide", "-f", tmp_path / "objects.yaml", "--config", config, "-o", "json").json
    return found


def test_a_pod_goes_to_its_zone_and_not_to_a_node_in_maintenance(tmp_path: Path, config: str) -> None:
    away, here = node("n0", labels={"zone": "a"}), node("n1", labels={"zone": "b"})
    assert decided(tmp_path, config, away, here)["cycles"][0]["binds"] == {"default/p": "n1"}
    closed = node("n1", labels={"zone": "b", "maintenance": "true"})
    assert decided(tmp_path, config, away, closed)["cycles"][0]["binds"] == {"default/p": "n0"}
    nowhere = decided(tmp_path, config, closed)
    assert nowhere["cycles"][0]["binds"] == {}
    assert "1 node(s) were in maintenance" in nowhere["pending"]["default/p"]["message"]


def test_the_configuration_is_told_without_a_warning(config: str) -> None:
    said = pumice("check", config, "-o", "json")
    assert said.code == 0
    assert "extender" not in str(said.json.get("without_effect", ""))
