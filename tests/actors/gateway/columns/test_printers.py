"""Every other kind: one object, its cells (figures after kubernetes' own printers)."""

from typing import Any

import pytest

from pumice.actors.gateway.columns import PRINTERS, printer_of, row
from pumice.cluster.api.kinds import KINDS

NOW = 1000.0
CREATED = "1970-01-01T00:15:00Z"  # 100 s ago
TEMPLATE: dict[str, Any] = {"spec": {"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y"}]}}
WORDS = ["a,b", "x:1,y"]
SELECTOR = {"matchLabels": {"app": "w"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["2", "1"]}]}
CHOSEN = "app=w,tier in (1,2)"

CASES: list[tuple[str, dict[str, Any], list[Any]]] = [
    (
        "Node",
        {
            "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge"}},
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {"kubeletVersion": "v1.35.3", "osImage": "linux"},
            },
        },
        [
            "Ready,SchedulingDisabled",
            "edge,worker",
            "100s",
            "v1.35.3",
            "10.0.0.1",
            "<none>",
            "linux",
            "<unknown>",
            "<unknown>",
        ],
    ),
    ("Namespace", {"status": {"phase": "Active"}}, ["Active", "100s"]),
    (
        "Deployment",
        {
            "spec": {"replicas": 5, "selector": SELECTOR, "template": TEMPLATE},
            "status": {"readyReplicas": 3, "updatedReplicas": 2, "availableReplicas": 1},
        },
        ["3/5", 2, 1, "100s", *WORDS, CHOSEN],
    ),
    (
        "ReplicaSet",
        {"spec": {"replicas": 5, "selector": SELECTOR, "template": TEMPLATE}, "status": {"replicas": 4}},
        [5, 4, 0, "100s", *WORDS, CHOSEN],
    ),
    (
        "ReplicationController",
        {"spec": {"replicas": 2, "selector": {"b": "2", "a": "1"}, "template": TEMPLATE}, "status": {}},
        [2, 0, 0, "100s", *WORDS, "a=1,b=2"],
    ),
    (
        "StatefulSet",
        {"spec": {"replicas": 2, "template": TEMPLATE}, "status": {"readyReplicas": 1}},
        ["1/2", "100s", *WORDS],
    ),
    (
        "DaemonSet",
        {"spec": {"template": TEMPLATE}, "status": {"desiredNumberScheduled": 3, "numberReady": 2}},
        [3, 0, 2, 0, 0, "<none>", "100s", *WORDS, "<none>"],
    ),
    (
        "Job.batch",
        {
            "spec": {"completions": 2, "template": TEMPLATE},
            "status": {
                "succeeded": 2,
                "startTime": CREATED,
                "completionTime": "1970-01-01T00:15:30Z",
                "conditions": [{"type": "Complete", "status": "True"}],
            },
        },
        ["Complete", "2/2", "30s", "100s", *WORDS, "<none>"],
    ),
    (
        "Job.batch",
        {"spec": {"parallelism": 3, "template": TEMPLATE}, "status": {"startTime": CREATED}},
        ["Running", "0/1 of 3", "100s", "100s", *WORDS, "<none>"],
    ),
    (
        "CronJob.batch",
        {
            "spec": {"schedule": "* * * * *", "suspend": False, "jobTemplate": {"spec": {"template": TEMPLATE}}},
            "status": {"active": [{}], "lastScheduleTime": CREATED},
        },
        ["* * * * *", "<none>", "False", 1, "100s", "100s", *WORDS, "<none>"],
    ),
    (
        "Service",
        {"spec": {"clusterIP": "10.0.0.9", "ports": [{"port": 80}, {"port": 1, "nodePort": 30001, "protocol": "UDP"}]}},
        ["ClusterIP", "10.0.0.9", "<none>", "80/TCP,1:30001/UDP", "100s", "<none>"],
    ),
    (
        "Service",
        {"spec": {"type": "LoadBalancer", "clusterIPs": ["None"], "selector": {"a": "1"}}},
        ["LoadBalancer", "None", "<pending>", "<none>", "100s", "a=1"],
    ),
    (
        "Endpoints",
        {"subsets": [{"addresses": [{"ip": "1.1.1.1"}, {"ip": "::1"}], "ports": [{"port": 1}, {"port": 2}]}]},
        ["1.1.1.1:1,[::1]:1,1.1.1.1:2 + 1 more...", "100s"],
    ),
    (
        "EndpointSlice",
        {"addressType": "IPv4", "ports": [{"name": "http", "port": 80}], "endpoints": [{"addresses": ["1.1.1.1"]}]},
        ["IPv4", "80", "1.1.1.1", "100s"],
    ),
    ("NetworkPolicy", {"spec": {"podSelector": {"matchLabels": {"a": "1"}}}}, ["a=1", "100s"]),
    ("ConfigMap", {"data": {"a": "1"}, "binaryData": {"b": "AA=="}}, [2, "100s"]),
    ("Secret", {"type": "Opaque", "data": {"a": "AA=="}}, ["Opaque", 1, "100s"]),
    ("LimitRange", {}, [CREATED]),
    (
        "RoleBinding",
        {
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [
                {"kind": "User", "name": "u"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
                {"kind": "User", "name": "v"},
            ],
        },
        ["Role/r", "100s", "u, v", "", "n/s"],
    ),
    (
        "HorizontalPodAutoscaler",
        {
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "d"},
                "maxReplicas": 9,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}},
                    {"type": "Pods", "pods": {"target": {"averageValue": "10"}}},
                    {"type": "External", "external": {"target": {"value": "1"}}},
                ],
            },
            "status": {
                "currentReplicas": 2,
                "currentMetrics": [{"type": "Resource", "resource": {"current": {"averageUtilization": 55}}}],
            },
        },
        ["Deployment/d", "cpu: 55%/80%, <unknown>/10 + 1 more...", "<unset>", 9, 2, "100s"],
    ),
    (
        "PersistentVolume",
        {
            "spec": {
                "capacity": {"storage": "1024Mi"},
                "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": "n", "name": "c"},
                "storageClassName": "fast",
                "volumeMode": "Filesystem",
            },
            "status": {"phase": "Bound"},
        },
        ["1Gi", "RWO,RWX", "Retain", "Bound", "n/c", "fast", "<unset>", "", "100s", "Filesystem"],
    ),
    (
        "PersistentVolumeClaim",
        {"spec": {"resources": {"requests": {"storage": "1Gi"}}}, "status": {"phase": "Pending"}},
        ["Pending", "", "", "", "", "<unset>", "100s", "<unset>"],
    ),
    (
        "PersistentVolumeClaim",
        {
            "spec": {"volumeName": "v", "storageClassName": "fast"},
            "status": {"phase": "Bound", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadOnlyMany"]},
        },
        ["Bound", "v", "2Gi", "ROX", "fast", "<unset>", "100s", "<unset>"],
    ),
    ("StorageClass", {"provisioner": "p"}, ["p", "Delete", "Immediate", False, "100s"]),
    (
        "VolumeAttachment",
        {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}},
        ["a", "v", "n", False, "100s"],
    ),
    ("CSINode", {"spec": {"drivers": [{}, {}]}}, [2, "100s"]),
    ("CSIDriver", {"spec": {}}, [True, False, False, "<unset>", False, "<none>", "100s"]),
    ("CSIStorageCapacity", {"storageClassName": "s", "capacity": "1Gi"}, ["s", "1Gi"]),
    (
        "PodDisruptionBudget",
        {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 2}},
        ["50%", "N/A", 2, "100s"],
    ),
    (
        "ResourceQuota",
        {
            "status": {
                "hard": {"pods": "9", "cpu": "2000m", "limits.cpu": "4", "limitsome": "1"},
                "used": {"cpu": "500m"},
            }
        },
        ["cpu: 500m/2, limitsome: 0/1, pods: 0/9", "limits.cpu: 0/4", "100s"],
    ),
    ("PriorityClass", {"value": 5, "preemptionPolicy": "Never"}, [5, False, "100s", "Never"]),
    ("Lease", {"spec": {"holderIdentity": "me"}}, ["me", "100s"]),
    ("ResourceClaim", {"status": {"allocation": {}, "reservedFor": [{}]}}, ["allocated,reserved", "100s"]),
    ("ResourceClaim", {}, ["pending", "100s"]),
    ("ResourceSlice", {"spec": {"driver": "d", "pool": {"name": "p"}}}, ["", "d", "p", "100s"]),
    ("DeviceClass", {}, ["100s"]),
    ("NodeMetrics", {"usage": {"cpu": "1500m", "memory": "1024Ki"}, "window": "30s"}, ["1500m", "1Mi", "30s"]),
    (
        "PodMetrics",
        {"containers": [{"usage": {"cpu": "1", "memory": "1Gi"}}, {"usage": {"cpu": "500m", "memory": "1Gi"}}]},
        ["1500m", "2Gi", ""],
    ),
    (
        "Job",
        {"spec": {"queue": "q"}, "status": {"state": {"phase": "Running"}, "minAvailable": 2}},
        ["Running", 2, None, "100s", "q"],
    ),
    ("PodGroup", {"spec": {"minMember": 3}, "status": {"phase": "Inqueue"}}, ["Inqueue", 3, None, "100s", None]),
    ("Queue", {"spec": {"parent": "root"}}, ["root"]),
    ("HyperNode", {"spec": {"tier": 1}, "status": {"nodeCount": 4}}, ["1", None, 4, "100s"]),
    ("JobFlow", {"status": {"state": {"phase": "Succeed"}}}, ["Succeed", "100s"]),
    ("Numatopology", {}, ["100s"]),
    (
        "Ingress",
        {"spec": {"rules": [{"host": "a"}, {"host": "b"}, {"host": "c"}, {"host": "d"}], "tls": [{}]}},
        ["<none>", "a,b,c + 1 more...", "", "80, 443", "100s"],
    ),
    ("Ingress", {"spec": {"ingressClassName": "k"}}, ["k", "*", "", "80", "100s"]),
    (
        "IngressClass",
        {"spec": {"controller": "c", "parameters": {"apiGroup": "g.io", "kind": "K", "name": "p"}}},
        ["c", "K.g.io/p", "100s"],
    ),
    ("RuntimeClass", {"handler": "runc"}, ["runc", "100s"]),
    ("MutatingWebhookConfiguration", {"webhooks": [{}, {}]}, [2, "100s"]),
    ("ValidatingAdmissionPolicy", {"spec": {"validations": [{}]}}, [1, "<unset>", "100s"]),
    (
        "ValidatingAdmissionPolicyBinding",
        {"spec": {"policyName": "p", "paramRef": {"name": "r"}}},
        ["p", "*/r", "100s"],
    ),
    ("PodTemplate", {"template": {**TEMPLATE, "metadata": {"labels": {"a": "1"}}}}, [*WORDS, "a=1"]),
    ("Command", {"action": "AbortJob"}, ["100s"]),
]


@pytest.mark.parametrize(("kind", "obj", "cells"), CASES)
def test_a_row_shows_what_kubectl_shows(kind: str, obj: dict[str, Any], cells: list[Any]) -> None:
    whole = {**obj, "metadata": {"name": "x", "creationTimestamp": CREATED, **obj.get("metadata", {})}}
    assert row(printer_of(kind), whole, NOW, "None") == {"cells": ["x", *cells]}


def test_a_default_storage_class_says_so() -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    made = row(printer_of("StorageClass"), {"metadata": {"name": "x", "annotations": annotations}}, NOW, "None")
    assert made["cells"][0] == "x (default)"


@pytest.mark.parametrize(
    ("event", "last", "source", "times"),
    [
        ({"firstTimestamp": CREATED, "source": {"component": "c", "host": "h"}}, "100s", "c, h", 1),
        ({"eventTime": CREATED, "reportingComponent": "r"}, "100s", "r", 1),
        ({"firstTimestamp": CREATED, "lastTimestamp": "1970-01-01T00:16:35Z", "count": 4}, "5s", "", 4),
        ({"eventTime": CREATED, "series": {"count": 7, "lastObservedTime": "1970-01-01T00:16:39Z"}}, "1s", "", 7),
    ],
)
def test_an_event_tells_when_and_how_often(event: dict[str, Any], last: str, source: str, times: int) -> None:
    about = {"involvedObject": {"kind": "Pod", "name": "p"}, "type": "Normal", "reason": "R", "message": " m\n"}
    made = row(printer_of("Event"), {"metadata": {"name": "e"}, **about, **event}, NOW, "None")
    assert made["cells"] == [last, "Normal", "R", "pod/p", "", source, "m", "100s", times, "e"]


def test_every_row_has_a_cell_for_every_column() -> None:
    for kind, printer in PRINTERS.items():
        assert len(printer.cells({"metadata": {"name": "x"}}, NOW)) == len(printer.columns), kind
        assert sum(column.format == "name" and column.name == "Name" for column in printer.columns) <= 1


def test_the_first_column_is_the_name() -> None:
    others = {kind for kind, printer in PRINTERS.items() if printer.columns[0].name != "Name"}
    assert others == {"Event", "Status"}


def test_every_kind_of_kubernetes_has_a_printer_of_its_own() -> None:
    by_default = {row.key for row in KINDS.values()} - PRINTERS.keys()
    assert {key for key in by_default if "volcano" not in KINDS[key].group} == set()
