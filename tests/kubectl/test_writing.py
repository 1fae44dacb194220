"""What kubectl changes: create, apply in both ways, replace, patch, edit, label, scale, delete."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.kit.kubectl import Kubectl
from tests.kubectl.conftest import pod, queue, text

DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["size"],
                                "properties": {"size": {"type": "integer", "minimum": 1}},
                            }
                        },
                    }
                },
            }
        ],
    },
}


def test_apply_three_ways(inside: Any) -> None:
    one = pod("a", app="x")
    assert inside("apply", "-f", "-", stdin=text(one)) == "pod/a created"
    assert inside("apply", "-f", "-", stdin=text(one)) == "pod/a unchanged"
    one["metadata"]["labels"] = {"tier": "z"}
    assert inside("apply", "-f", "-", stdin=text(one)) == "pod/a configured"
    assert inside("get", "pod", "a", "-o", "jsonpath={.metadata.labels}") == '{"tier":"z"}'


def test_apply_of_a_volcano_kind(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=text(queue("applied", 1))).endswith("created")
    assert kubectl("apply", "-f", "-", stdin=text(queue("applied", 1))).endswith("unchanged")
    assert kubectl("apply", "-f", "-", stdin=text(queue("applied", 4))).endswith("configured")
    assert kubectl("get", "q", "applied", "-o", "jsonpath={.spec.weight}") == "4"


def test_server_side_apply_and_its_conflicts(kubectl: Kubectl, namespace: str) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    apply = ("-n", namespace, "apply", "--server-side", "-f", "-")
    assert "serverside-applied" in kubectl(*apply, stdin=text(config))
    kubectl("-n", namespace, "patch", "cm", "c", "--type=merge", "-p", '{"data":{"b":"2"}}')
    other = {**config, "data": {"a": "3"}}
    told = kubectl.refused(*apply, "--field-manager=other", stdin=text(other))
    assert "conflict" in told
    assert ".data.a" in told
    kubectl(*apply, "--field-manager=other", "--force-conflicts", stdin=text(other))
    shown = ("-n", namespace, "get", "cm", "c", "-o")
    assert kubectl(*shown, "jsonpath={.data}") == '{"a":"3","b":"2"}'
    assert "manager: other" in kubectl(*shown, "yaml", "--show-managed-fields")


def test_strict_validation_and_dry_run(kubectl: Kubectl, namespace: str) -> None:
    wrong = pod("a")
    wrong["spec"]["nonsense"] = 1
    create = ("-n", namespace, "create", "-f", "-")
    assert 'unknown field "spec.nonsense"' in kubectl.refused(*create, stdin=text(wrong))
    assert "created" in kubectl(*create, "--validate=warn", stdin=text(wrong))
    assert "server dry run" in kubectl(*create, "--dry-run=server", stdin=text(pod("b")))
    assert "not found" in kubectl.refused("-n", namespace, "get", "pod", "b")
    assert "already exists" in kubectl.refused(*create, stdin=text(pod("a")))


def test_generated_names(inside: Any) -> None:
    one = pod("")
    one["metadata"] = {"generateName": "gen-"}
    assert inside("create", "-f", "-", stdin=text(one)).startswith("pod/gen-")


def test_imperative_creation(kubectl: Kubectl, inside: Any, namespace: str) -> None:
    assert kubectl("create", "ns", f"{namespace}-sub").endswith("created")
    inside("create", "configmap", "c", "--from-literal=a=b")
    inside("create", "secret", "generic", "s", "--from-literal=p=q")
    inside("create", "serviceaccount", "sa")
    inside("create", "deployment", "d", "--image=busybox", "--replicas=2")
    inside("create", "quota", "q", "--hard=pods=10")
    inside("create", "pdb", "b", "--selector=app=d", "--min-available=1")
    kubectl("create", "priorityclass", f"{namespace}-pc", "--value=5")
    assert inside("get", "cm", "c", "-o", "jsonpath={.data.a}") == "b"
    assert inside("get", "secret", "s", "-o", "jsonpath={.data.p}") == "cQ=="
    assert inside("scale", "deployment", "d", "--replicas=3").endswith("scaled")
    assert inside("get", "deployment", "d", "-o", "jsonpath={.spec.replicas}") == "3"


def test_replace_and_conflict(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=text(queue("replaced", 1)))
    old = {**queue("replaced", 2), "metadata": {"name": "replaced", "resourceVersion": "1"}}
    assert "the object has been modified" in kubectl.refused("replace", "-f", "-", stdin=text(old))
    kubectl("replace", "-f", "-", stdin=text(queue("replaced", 3)))
    kubectl("replace", "--force", "-f", "-", stdin=text(queue("replaced", 5)))
    assert kubectl("get", "q", "replaced", "-o", "jsonpath={.spec.weight}") == "5"


def test_patches_of_every_form(kubectl: Kubectl, inside: Any) -> None:
    inside("create", "-f", "-", stdin=text(pod("a", app="x")))
    inside("patch", "pod", "a", "-p", '{"spec":{"containers":[{"name":"main","image":"other"}]}}')
    assert inside("get", "pod", "a", "-o", "jsonpath={.spec.containers[*].image}") == "other"
    inside("patch", "pod", "a", "--type=merge", "-p", '{"metadata":{"labels":{"m":"1"}}}')
    inside("patch", "pod", "a", "--type=json", "-p", '[{"op":"remove","path":"/metadata/labels/m"}]')
    assert inside("get", "pod", "a", "-o", "jsonpath={.metadata.labels}") == '{"app":"x"}'
    assert "is not supported by scheduling.volcano.sh/v1beta1" in kubectl.refused("patch", "q", "default", "-p", "{}")


def test_label_annotate_edit(kubectl: Kubectl, inside: Any, namespace: str, tmp_path: Path) -> None:
    inside("create", "-f", "-", stdin=text(pod("a")))
    inside("label", "pod", "a", "x=1")
    inside("annotate", "pod", "a", "k=v")
    inside("label", "pod", "a", "x-")
    assert inside("get", "pod", "a", "-o", "jsonpath={.metadata.labels}{.metadata.annotations.k}") in ("{}v", "v")
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/k: v/k: edited/" "$1"\n')
    editor.chmod(0o755)
    edit = kubectl.run("-n", namespace, "edit", "pod", "a", environment={"KUBE_EDITOR": str(editor)})
    assert edit.returncode == 0, edit.stderr
    assert inside("get", "pod", "a", "-o", "jsonpath={.metadata.annotations.k}") == "edited"


@pytest.mark.skipif(shutil.which("diff") is None and not os.environ.get("CI"), reason="kubectl diff runs diff")
def test_diff(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=text(queue("differs", 1)))
    assert kubectl("diff", "-f", "-", stdin=text(queue("differs", 1))) == ""
    done = kubectl.run("diff", "-f", "-", stdin=text(queue("differs", 7)))
    assert done.returncode == 1
    assert "+  weight: 7" in done.stdout


@pytest.mark.slow
def test_delete_with_grace_force_and_finalizers(kubectl: Kubectl, inside: Any, namespace: str) -> None:
    inside("create", "-f", "-", stdin=text(pod("a"), pod("b"), pod("c", app="x")))
    inside("wait", "--for=condition=Ready", "pod", "--all", "--timeout=30s")
    inside("delete", "pod", "a")
    inside("delete", "pod", "b", "--force", "--grace-period=0")
    inside("delete", "pod", "-l", "app=x", "--now")
    assert inside("get", "pods", "-o", "name") == ""
    kept = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "k", "finalizers": ["example.com/x"]}}
    inside("create", "-f", "-", stdin=text(kept))
    inside("delete", "cm", "k", "--wait=false")
    assert inside("get", "cm", "k", "-o", "jsonpath={.metadata.deletionTimestamp}")
    inside("patch", "cm", "k", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert "not found" in kubectl.refused("-n", namespace, "get", "cm", "k")


@pytest.mark.slow
def test_dependents_go_with_their_owner(inside: Any) -> None:
    inside("create", "cm", "owner")
    uid = inside("get", "cm", "owner", "-o", "jsonpath={.metadata.uid}")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": True}
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child", "ownerReferences": [owner]}}
    inside("create", "-f", "-", stdin=text(child))
    inside("delete", "cm", "owner", "--cascade=foreground")
    assert inside("get", "cm", "-o", "name").split() == ["configmap/kube-root-ca.crt"], "each namespace has one"
    inside("create", "cm", "owner")
    owner["uid"] = inside("get", "cm", "owner", "-o", "jsonpath={.metadata.uid}")
    inside("create", "-f", "-", stdin=text(child))
    inside("delete", "cm", "owner", "--cascade=orphan")
    assert "configmap/child" in inside("get", "cm", "-o", "name")


def test_a_namespace_goes_with_what_is_in_it(kubectl: Kubectl, inside: Any, namespace: str) -> None:
    inside("create", "cm", "c")
    kubectl("delete", "ns", namespace)
    assert "not found" in kubectl.refused("get", "ns", namespace)
    assert "not found" in kubectl.refused("-n", namespace, "get", "cm", "c")


def test_a_kind_of_ones_own(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-f", "-", stdin=text(DEFINITION))
    kubectl("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=10s")
    widget: dict[str, Any] = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    create = ("-n", namespace, "apply", "-f", "-")
    assert "spec.size" in kubectl.refused(*create, stdin=text({**widget, "spec": {"size": 0}}))
    kubectl(*create, stdin=text({**widget, "spec": {"size": 3}}))
    assert [row.split() for row in kubectl("-n", namespace, "get", "wd").splitlines()] == [["NAME", "SIZE"], ["w", "3"]]
    assert "size" in kubectl("explain", "widget.spec")
    kubectl("delete", "crd", "widgets.example.com")
    assert "the server" in kubectl.refused("-n", namespace, "get", "widgets")
