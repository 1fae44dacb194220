"""The chart pumice: what its values allow, what it asks for, and helm itself against `pumice run --http`."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from pumice import __version__
from pumice.cli.app import load
from tests.kit import source
from tests.kit.roles import OF_NAMESPACES
from tests.kit.serving import served

CHART: Final = source.ROOT / "charts" / "pumice"
SETS: Final = sorted((CHART / "ci").glob("*-values.yaml"))
HELM: Final = shutil.which("helm")
needs_helm = pytest.mark.skipif(
    HELM is None, reason="helm is not installed: go install helm.sh/helm/v3/cmd/helm@latest"
)
KUBERNETES: Final = "1.35.0"
"""A helm that Go has installed takes Kubernetes 1.20 for granted otherwise."""
PAGES: Final = {"mirror", "shadow", "scheduler"}
STAYS: Final = ("--set-string", r"podAnnotations.pumice\.dev/duration=0")
"""The simulated pod is one that never ends."""

PATIENCE_S: Final = 60.0

Document = dict[str, Any]


def values(path: Path) -> Document:
    loaded: Document = yaml.safe_load(path.read_text("utf-8"))
    return loaded


def helm(*arguments: str | Path, environment: Mapping[str, str] | None = None, fails: bool = False) -> str:
    assert HELM is not None
    words = [HELM, *map(str, arguments)]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=110, env={**os.environ, **(environment or {})}
    )
    assert bool(done.returncode) is fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


def rendered(*arguments: str | Path) -> list[Document]:
    text = helm("template", "r", CHART, "--namespace", "pumice", "--kube-version", KUBERNETES, *arguments)
    return [each for each in yaml.safe_load_all(text) if each]


def of_kind(documents: Sequence[Document], kind: str) -> Document:
    (found,) = [each for each in documents if each["kind"] == kind]
    return found


def rights(documents: Sequence[Document]) -> set[tuple[str, str, str, str]]:
    """Group, resource, name and verb of every rule."""
    rules = [rule for each in documents if each["kind"] in ("ClusterRole", "Role") for rule in each["rules"]]
    return {
        (group, resource, name, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }


def schema() -> Document:
    loaded: Document = yaml.safe_load((CHART / "values.schema.json").read_text("utf-8"))
    return loaded


def merged(below: Document, above: Document) -> Document:
    """Values as helm merges them."""
    both = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], dict) and isinstance(above[key], dict):
            both[key] = merged(below[key], above[key])
    return both


# --- Without helm


def test_chart_is_of_the_application_s_version() -> None:
    chart = values(CHART / "Chart.yaml")
    assert chart["appVersion"] == __version__
    assert chart["version"].replace("-", "") == __version__, "a chart's version is semantic: 1.0.0-rc1"


@pytest.mark.parametrize("path", SETS, ids=lambda path: path.name)
def test_values_of_each_set_are_allowed(path: Path) -> None:
    jsonschema.validate(merged(values(CHART / "values.yaml"), values(path)), schema())


def test_sets_cover_each_mode() -> None:
    assert {values(path)["mode"] for path in SETS} == PAGES


def test_every_value_has_a_rule() -> None:
    """A value that the schema does not know would be refused; one that is not in values.yaml would have no default."""
    usual = values(CHART / "values.yaml")
    known = schema()["properties"]
    assert known.keys() - {"global"} == usual.keys()
    for key, inner in usual.items():
        if isinstance(inner, dict) and "properties" in known[key]:
            assert known[key]["properties"].keys() == inner.keys(), key


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "miror"},
        {"modes": "mirror"},
        {"mode": "shadow", "replicas": 2},
        {"mode": "scheduler", "redact": True},
        {"journal": {"keep": "a week"}},
        {"page": {"port": 0}},
        {"extraArgs": ["debug"]},
    ],
    ids=str,
)
def test_values_that_are_wrong_are_refused(wrong: Document) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(merged(values(CHART / "values.yaml"), wrong), schema())


# --- With helm


@needs_helm
@pytest.mark.parametrize("path", SETS, ids=lambda path: path.name)
def test_helm_accepts_each_set(path: Path) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", CHART, "--kube-version", KUBERNETES, "--values", path)
    assert {"StatefulSet", "Service"} <= {each["kind"] for each in rendered("--values", path)}


@needs_helm
@pytest.mark.parametrize("path", SETS, ids=lambda path: path.name)
def test_pod_of_each_set_may_do_little(path: Path) -> None:
    documents = rendered("--values", path)
    spec = of_kind(documents, "StatefulSet")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys()
    assert all("namespace" not in each["metadata"] for each in documents if "Role" not in each["kind"])
    assert of_kind(documents, "NetworkPolicy")["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert of_kind(documents, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


@needs_helm
@pytest.mark.parametrize("path", SETS, ids=lambda path: path.name)
def test_arguments_of_the_pod_are_options_of_the_command(path: Path) -> None:
    (container,) = of_kind(rendered("--values", path), "StatefulSet")["spec"]["template"]["spec"]["containers"]
    command, *options = container["args"]
    known = {spelling for each in load(command).params for spelling in each.opts}
    assert {each.partition("=")[0] for each in options} <= known
    served_to_others = any(each.startswith("--http=0.0.0.0") for each in options)
    assert served_to_others == ("--token-file=/secrets/token/token" in options), "who serves others asks for a token"


@needs_helm
@pytest.mark.parametrize(
    ("mode", "example"),
    [("mirror", "mirror-role.yaml"), ("shadow", "mirror-role.yaml"), ("scheduler", "deploy.yaml")],
)
def test_rights_of_a_mode_are_those_of_the_example(mode: str, example: str) -> None:
    manifests = yaml.safe_load_all((source.ROOT / "examples" / example).read_text("utf-8"))
    assert rights(rendered("--set", f"mode={mode}")) == rights(list(manifests))


@needs_helm
def test_nobody_reaches_a_page_that_is_off() -> None:
    documents = rendered("--set", "page.enabled=false")
    assert "Secret" not in {each["kind"] for each in documents}
    assert of_kind(documents, "NetworkPolicy")["spec"]["ingress"] == []
    assert of_kind(documents, "Service")["spec"]["clusterIP"] == "None"


@needs_helm
def test_helm_names_a_value_that_is_wrong() -> None:
    assert "mode" in helm("template", CHART, "--kube-version", KUBERNETES, "--set", "mode=miror", fails=True)


@needs_helm
@pytest.mark.slow
def test_helm_installs_upgrades_rolls_back_and_removes(tmp_path: Path) -> None:
    with served(tmp_path, role=OF_NAMESPACES) as server, server.client() as client:
        way = {"KUBECONFIG": str(server.kubeconfig()), "HOME": str(tmp_path)}
        at = ("--namespace", "pumice", "--wait", "--timeout", "90s")

        def pods() -> dict[str, str]:
            found = client.get("/api/v1/namespaces/pumice/pods").json()["items"]
            return {each["metadata"]["name"]: each["spec"]["containers"][0]["args"][0] for each in found}

        def token() -> str:
            return str(client.get("/api/v1/namespaces/pumice/secrets/p-pumice-page").json()["data"]["token"])

        helm("install", "p", CHART, "--create-namespace", *at, *STAYS, environment=way)
        assert pods() == {"p-pumice-0": "mirror"}
        first = token()

        scheduler = ("--set", "mode=scheduler,replicas=2", *STAYS)
        helm("upgrade", "p", CHART, *at, *scheduler, environment=way)
        assert pods() == {"p-pumice-0": "run", "p-pumice-1": "run"}
        assert token() == first, "an upgrade keeps the token"

        helm("rollback", "p", "1", *at, environment=way)
        assert pods() == {"p-pumice-0": "mirror"}
        history = yaml.safe_load(helm("history", "p", "--namespace", "pumice", "-o", "yaml", environment=way))
        assert [each["status"] for each in history] == ["superseded", "superseded", "deployed"]

        helm("uninstall", "p", *at, environment=way)
        until = time.monotonic() + PATIENCE_S  # helm waits for its own objects, and not for their pods
        while pods() and time.monotonic() < until:
            time.sleep(0.2)
        assert pods() == {}
        claims = client.get("/api/v1/namespaces/pumice/persistentvolumeclaims").json()["items"]
        assert "journal-p-pumice-0" in {each["metadata"]["name"] for each in claims}, "the journal stays"
