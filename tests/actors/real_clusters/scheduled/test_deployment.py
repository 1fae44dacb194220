"""The rights in the example are those that the scheduler of a cluster needs: what it reads, and each write it makes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.actors.real_clusters.mirror.intake import resources
from pumice.config.settings import CHARTS
from tests.actors.real_clusters.mirror.test_role import path_of
from tests.actors.real_clusters.scheduled.rig import QUICK, is_bound, scheduler, unscheduled, until, way_to
from tests.kit import source
from tests.kit.pods import pod
from tests.kit.serving import served

EXAMPLE: Path = source.ROOT / "examples" / "deploy.yaml"
DOCUMENTS: list[dict[str, Any]] = list(yaml.safe_load_all(EXAMPLE.read_text("utf-8")))
VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}


def allowed() -> set[tuple[str, str, str]]:
    """Group, resource and verb."""
    rules = [rule for each in DOCUMENTS if each["kind"] in ("ClusterRole", "Role") for rule in each["rules"]]
    return {
        (group, name, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for name in rule["resources"]
        for verb in rule["verbs"]
    }


def asked(sent: str) -> tuple[str, str, str]:
    """The right that a request needs: "POST /api/v1/namespaces/default/pods/p/binding"."""
    method, path = sent.split()
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    rest = rest[2:] if rest[0] == "namespaces" and len(rest) > 2 else rest
    return group, "/".join([rest[0], *rest[2:]]), VERBS[method]


def test_all_that_is_followed_may_be_read() -> None:
    reads = {(group, name) for group, name, verb in allowed() if verb == "list"}
    assert reads == {path_of(each.path) for each in resources(CHARTS)}


@pytest.mark.anyio
async def test_each_write_is_allowed() -> None:
    async with unscheduled() as web, way_to(web) as way, scheduler(way, election=QUICK):
        await web.system.submit([pod("fits"), pod("big", cpu="64")])
        await until(web, "Pod", "fits", is_bound)
    writes = {asked(each) for each in way.sent if not each.startswith("GET")}
    assert ("", "pods/binding", "create") in writes
    assert ("coordination.k8s.io", "leases", "create") in writes
    assert writes <= allowed()


@pytest.mark.slow
def test_the_manifests_are_taken_by_an_api_server(tmp_path: Path) -> None:
    with served(tmp_path, "--no-scheduler", "--no-controllers") as server, server.client() as client:
        for each in DOCUMENTS:
            group, _, version = each["apiVersion"].rpartition("/")
            root = f"/apis/{group}/{version}" if group else f"/api/{version}"
            namespace = each["metadata"].get("namespace")
            plural = each["kind"].lower() + "s"
            path = f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"
            answer = client.post(path, json=each)
            assert answer.status_code in (201, 409), answer.text
            strict = client.post(path, params={"fieldValidation": "Strict", "dryRun": "All"}, json=each)
            assert strict.status_code == 409, strict.text
