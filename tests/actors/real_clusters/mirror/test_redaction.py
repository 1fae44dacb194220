"""A cluster under pseudonyms: no name is left, and what is decided is the same."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec
import pytest

from pumice.actors.real_clusters.mirror.changes import change_of, trimmed
from pumice.actors.real_clusters.mirror.redaction import PseudonymFile, Redaction
from pumice.config.errors import ConfigError
from pumice.core.devices.ascend.reports import Reported, Reports
from pumice.core.messages.decisions import Bind, CycleResult, Decision
from pumice.core.objects.hyper_node import read_hyper_node
from pumice.core.objects.metadata import Object
from pumice.core.plugins import VOCABULARIES
from pumice.core.pseudonyms import Pseudonyms
from pumice.core.state.hypernodes import build_tree
from pumice.core.vocabulary import Vocabulary
from pumice.proof.conformance.case import find_suites, read_cases, setup_of
from pumice.questions.oneshot.cycles import run_cycles
from pumice.storage.memory import MemoryJournal
from tests.actors.real_clusters.mirror.rig import cluster, decided, mirror, way_to
from tests.actors.rig import idle, placed
from tests.kit import source
from tests.kit.jobs import job_task, vcjob
from tests.kit.nodes import node
from tests.kit.pods import pod

SHARED: Final = source.SHARED
CASES: Final = (SHARED / "conformance", SHARED / "conformance-late")
EVERY: Final = 36
"""One case of so many is decided under pseudonyms."""


def redaction(step: int = 5) -> Redaction:
    names = Pseudonyms(lambda: step, lambda name, place: None)
    return Redaction(names.of, names.known)


def cases() -> Iterator[Object]:
    for suite in find_suites(CASES):
        if not suite.is_resources:
            yield from read_cases(suite.path)[::EVERY]


def told(result: CycleResult, hidden: Redaction | None) -> list[tuple[str, ...]]:
    """Binds, evictions and phases; with pseudonyms where they are not there yet."""
    name = hidden.name if hidden else str
    own = hidden.pod if hidden else str
    decisions: tuple[Decision, ...] = (*result.binds, *result.evicts)
    pods = [(type(each).__name__, name(each.namespace), own(each.name), name(each.node)) for each in decisions]
    return [*pods, *((name(each.namespace), name(each.name), each.phase) for each in result.pod_groups)]


def messages(result: CycleResult) -> list[str]:
    """What is said of pods and PodGroups that wait."""
    groups = [one.message for each in result.pod_groups for one in each.conditions]
    return [*(each.message for each in result.pod_conditions), *groups]


@pytest.mark.slow
@pytest.mark.skipif(
    not all(each.is_dir() for each in CASES), reason="the conformance cases are not beside the repository"
)
def test_recorded_cases_are_decided_the_same() -> None:
    decided_ = said = alike = 0
    for case in cases():
        setup, hidden = setup_of(case, close_hooks=True), redaction()
        options = setup.options
        if options.shard or options.node_usage or options.hyper_nodes:
            continue  # they name nodes beside the objects
        objects = [hidden.redacted(each["kind"], each) for each in setup.objects]
        (under,) = run_cycles(replace(setup, objects=objects), 1)
        (open_,) = run_cycles(setup, 1)
        assert told(under.result, None) == told(open_.result, hidden), case["name"]
        pairs = list(zip(messages(under.result), messages(open_.result), strict=True))
        said += len(pairs)
        alike += sum(here == hidden.words(there) for here, there in pairs)
        decided_ += len(open_.result.binds) + len(open_.result.evicts)
    assert decided_ > 100
    assert alike > 0.95 * said > 0


SECRET: Final = "secret"


def full_of_secrets() -> Object:
    """A pod that says it wherever somebody could."""
    found = pod("secret-pod", namespace="secret-ns", group="secret-group", node="secret-node")
    found["metadata"] |= {
        "labels": {"app": "secret-app", "volcano.sh/job-name": "secret-job", "volcano.sh/task-index": "1"},
        "annotations": {**found["metadata"]["annotations"], "example.com/note": "secret",
                        "volcano.sh/preemptable": "true",
                        "csi.volume.kubernetes.io/nodeid": "secret"},
        "generateName": "secret-", "finalizers": ["secret.io/f"],
        "ownerReferences": [{"kind": "Job", "name": "secret-job", "uid": "u"}],
    }  # fmt: skip
    (container,) = found["spec"]["containers"]
    container |= {
        "name": "secret", "image": "registry.secret/x:1", "command": ["secret"], "args": ["--secret"],
        "env": [{"name": "SECRET", "value": "secret"}], "envFrom": [{"secretRef": {"name": "secret"}}],
        "volumeMounts": [{"name": "secret", "mountPath": "/secret"}],
    }  # fmt: skip
    terms = [{"key": "zone", "operator": "In", "values": ["secret-zone"]}]
    found["spec"] |= {
        "serviceAccountName": "secret", "hostname": "secret", "nodeSelector": {"pool": "secret-pool"},
        "tolerations": [{"key": "for", "operator": "Equal", "value": "secret-team", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": terms}]}},
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "secret-app"}}, "topologyKey": "zone",
                 "namespaces": ["secret-ns"]}]}},
        "volumes": [{"name": "secret", "secret": {"secretName": "secret"}},
                    {"name": "data", "persistentVolumeClaim": {"claimName": "secret-claim"}}],
    }  # fmt: skip
    conditions = [{"type": "PodScheduled", "status": "False", "message": "no room on secret-node; 1 Insufficient cpu."}]
    found["status"] |= {"conditions": conditions, "message": "secret", "podIP": "10.0.0.1", "hostIP": "10.0.0.2"}
    return found


def test_no_name_is_left_and_what_decides_is() -> None:
    hidden = redaction()
    found = hidden.redacted("Pod", trimmed("Pod", full_of_secrets()))
    text = msgspec.json.encode(found).decode().lower()
    assert SECRET not in text
    assert "10.0.0" not in text
    spec, meta = found["spec"], found["metadata"]
    assert spec["nodeName"] == hidden.name("secret-node")
    (term,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"]["matchLabels"]["app"] == meta["labels"]["app"] == hidden.name("secret-app")
    assert meta["annotations"]["scheduling.k8s.io/group-name"] == hidden.name("secret-group")
    assert (meta["labels"]["volcano.sh/task-index"], meta["annotations"]["volcano.sh/preemptable"]) == ("1", "true")
    assert (
        found["status"]["conditions"][0]["message"] == f"no room on {hidden.name('secret-node')}; 1 Insufficient cpu."
    )


def test_what_a_condition_says_of_somebody_not_met_yet_is_no_leak() -> None:
    """PodGroups are taken in before pods and claims."""
    hidden = redaction()
    text = (
        "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable. Origin reason is"
        ' secret-train-0: persistentvolumeclaim "secret-claim" not found'
    )
    unknown = {"type": "Other", "status": "True", "reason": "SecretTeamStopped", "message": "secret/x@sha256:secret"}
    conditions = [{"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": text}, unknown]
    group: Object = {"metadata": {"name": "g", "namespace": "n"}, "spec": {}, "status": {"conditions": conditions}}
    first, second = hidden.redacted("PodGroup", group)["status"]["conditions"]
    assert SECRET not in str((first, second)).lower()
    pod_, claim = hidden.pod("secret-train-0"), hidden.name("secret-claim")
    assert first["message"] == text.replace("secret-train-0", pod_).replace("secret-claim", claim)
    assert first["reason"] == "NotEnoughResources"


def test_what_is_written_freely_of_devices_and_images_goes() -> None:
    found = pod("p", node="n")
    found["metadata"]["annotations"] = {
        "nvidia.com/use-gputype": "A100", "hami.io/bind-phase": "success", "nvidia.com/note": "for secret",
        "hami.io/why": "secret", "pumice.dev/comment": "secret", "pumice.dev/user": "secret",
    }  # fmt: skip
    found["status"]["ephemeralContainerStatuses"] = [{"name": "d", "image": "secret", "imageID": "secret@sha256:1"}]
    hidden = redaction()
    shown = hidden.redacted("Pod", trimmed("Pod", found))
    assert SECRET not in str(shown)
    kept = shown["metadata"]["annotations"]
    assert (kept["nvidia.com/use-gputype"], kept["hami.io/bind-phase"]) == ("A100", "success")
    assert kept["pumice.dev/user"] == hidden.name("secret")


def test_the_volumes_of_a_job_are_found_by_its_pods() -> None:
    claimed: Object = {"accessModes": ["ReadWriteOnce"], "storageClassName": "secret-class"}
    volumes = [{"mountPath": "/secret/a", "volumeClaimName": "secret-claim"},
               {"mountPath": "/secret/b", "volumeClaim": claimed, "volumeClaimName": ""}]  # fmt: skip
    job = vcjob("secret-job", job_task(replicas=1))
    job["spec"]["volumes"] = volumes
    hidden = redaction()
    found = hidden.redacted("Job", trimmed("Job", job))
    assert SECRET not in str(found)
    first, second = found["spec"]["volumes"]
    assert first == {"mountPath": hidden.name("/secret/a"), "volumeClaimName": hidden.name("secret-claim")}
    assert second["mountPath"] == hidden.name("/secret/b")
    assert second["volumeClaim"]["storageClassName"] == hidden.name("secret-class")


def test_a_list_of_nodes_as_a_pattern_is_renamed_and_any_other_matches_nobody() -> None:
    hidden = redaction()

    def pattern(text: str) -> str:
        obj = {"metadata": {"name": "h"}, "spec": {"members": [{"selector": {"regexMatch": {"pattern": text}}}]}}
        found: str = hidden.redacted("HyperNode", obj)["spec"]["members"][0]["selector"]["regexMatch"]["pattern"]
        return found

    assert pattern("^(n1|n2)$") == f"^({hidden.name('n1')}|{hidden.name('n2')})$"
    assert pattern("^rack-[0-9]+$") == "^$"


def test_the_number_of_a_pod_stays_and_its_own_claims_are_found() -> None:
    hidden = redaction()
    assert hidden.pod("job-task-10") == f"{hidden.name('job-task')}-0-10"
    assert hidden.pod("alone") == hidden.name("alone")
    owner = [{"kind": "Pod", "name": "job-task-10"}]
    claim = {"metadata": {"name": "job-task-10-data", "namespace": "a", "ownerReferences": owner}, "spec": {}}
    name = hidden.redacted("PersistentVolumeClaim", claim)["metadata"]["name"]
    assert name == f"{hidden.pod('job-task-10')}-{hidden.name('data')}"


def test_samples_without_a_uid_keep_none_of_the_name() -> None:
    change = change_of("NodeMetrics", {"metadata": {"name": "secret-node"}}, redaction=redaction())
    assert change.obj is not None
    assert SECRET not in str(change.obj)
    drawn = "0f1e2d3c-0000-4000-8000-123456789abc"
    meta = {"name": "n", "uid": drawn}
    assert redaction().redacted("Node", {"metadata": meta})["metadata"]["uid"] == drawn


def test_the_file_gives_the_same_again_and_forgets_what_was_torn(tmp_path: Path) -> None:
    path = tmp_path / "names"
    first = PseudonymFile(path)
    given = {name: first.redaction.name(name) for name in ("b", "a", "c")}
    first.save()
    assert path.stat().st_mode & 0o077 == 0
    with path.open("ab") as file:
        file.write(b'["torn",[1')
    again = PseudonymFile(path)
    assert {name: again.redaction.name(name) for name in given} == given
    again.redaction.name("aa")
    again.save()
    assert PseudonymFile(path).redaction.name("aa") == again.redaction.name("aa")
    path.write_text("nonsense\n")
    with pytest.raises(ConfigError, match="line 1: expected a name and its place"):
        PseudonymFile(path)


def npu_node(**labels: str) -> Object:
    """A node with MindCluster's chips, and somebody's own words and addresses beside them."""
    model = {"accelerator": "huawei-Ascend310P", "servertype": "Ascend310P-8"}
    found = node("secret-node", labels={**model, "node.kubernetes.io/npu.chip.name": "310P3", **labels})
    chips = {"Ascend310P-0": {"IP": "10.0.0.9"}, "secret": {}}
    found["metadata"]["annotations"] = {"baseDeviceInfos": msgspec.json.encode(chips).decode()}
    return found


def test_models_of_npus_stay_and_other_values_of_their_labels_go() -> None:
    hidden = redaction()
    meta = hidden.redacted("Node", npu_node())["metadata"]
    kept = {"accelerator": "huawei-Ascend310P", "servertype": "Ascend310P-8"}
    assert meta["labels"].items() >= kept.items()
    assert meta["labels"]["node.kubernetes.io/npu.chip.name"] == "310P3"
    assert meta["annotations"]["baseDeviceInfos"] == '{"Ascend310P-0":{}}'
    written = {"accelerator": "secret-cards", "servertype": "secret", "node.kubernetes.io/npu.chip.name": "for-secret"}
    other = hidden.redacted("Node", npu_node(**written))
    assert SECRET not in str(other)
    own = {"ring-controller.atlas": "ascend-310P", "vnpu-level": "high", "vnpu-dvpp": "secret"}
    labels = hidden.redacted("Pod", pod("p", labels=own))["metadata"]["labels"]
    assert labels == own | {"vnpu-dvpp": hidden.name("secret")}


@pytest.mark.parametrize("text", ["[]", "secret", '["secret"]'])
def test_list_of_chips_nobody_can_read_tells_nothing(text: str) -> None:
    found = npu_node()
    found["metadata"]["annotations"]["baseDeviceInfos"] = text
    assert redaction().redacted("Node", found)["metadata"]["annotations"] == {"baseDeviceInfos": ""}


@pytest.mark.parametrize("vocabulary", [each for each in VOCABULARIES if each != Vocabulary()])
def test_vocabulary_of_a_plugin_or_family_stays_and_names_go(vocabulary: Vocabulary) -> None:
    found = pod("p")
    found["metadata"]["annotations"] = dict.fromkeys(vocabulary.meanings, "kept") | dict.fromkeys(
        vocabulary.holds_names, SECRET
    )
    hidden = redaction()
    shown = hidden.redacted("Pod", found)["metadata"]["annotations"]
    assert shown == dict.fromkeys(vocabulary.meanings, "kept") | dict.fromkeys(
        vocabulary.holds_names, hidden.name(SECRET)
    )
    assert hidden.words(f"{vocabulary.words} {SECRET}") == f"{vocabulary.words} {hidden.name(SECRET)}"


def config_map(space: str, name: str, key: str, said: Object) -> Object:
    meta = {"name": name, "namespace": space, "labels": {"mx-consumer-cim": "true", "mx-consumer-volcano": "true"}}
    return {"metadata": meta, "data": {key: msgspec.json.encode(said).decode(), "other": "secret"}}


CHIPS: Final = {
    "huawei.com/Ascend310P": "Ascend310P-0,Ascend310P-1",
    "huawei.com/Ascend310P-Fault": '[{"at":"secret"}]',
}
LIST: Final = {"DeviceList": CHIPS, "UpdateTime": 7, "SuperPodID": 3, "note": "secret"}
STATE: Final = {"NodeStatus": "UnHealthy", "note": "secret"}


@pytest.mark.parametrize(
    ("cluster", "maps"),
    [
        (
            False,
            [
                config_map("kube-system", "mindx-dl-deviceinfo-secret", "DeviceInfoCfg",
                           {"DeviceInfo": {**LIST, "SuperPodID": 9}, "SuperPodID": 3, "CheckCode": "secret"}),
                config_map("mindx-dl", "mindx-dl-nodeinfo-secret", "NodeInfo", {"NodeInfo": STATE}),
            ],
        ),
        (
            True,
            [
                config_map("mindx-dl", "cluster-info-device-0", "cluster-info-device-0",
                           {"mindx-dl-deviceinfo-secret": LIST}),
                config_map("mindx-dl", "cluster-info-node-cm", "cluster-info-node-cm",
                           {"mindx-dl-nodeinfo-secret": STATE}),
            ],
        ),
    ],
)  # fmt: skip
def test_reports_of_npus_are_of_the_same_nodes_by_pseudonym(cluster: bool, maps: list[Object]) -> None:
    hidden = redaction()
    shown = [hidden.redacted("ConfigMap", each) for each in maps]
    assert SECRET not in str(shown)
    known = {f"{each['metadata']['namespace']}/{each['metadata']['name']}": each for each in shown}
    said = Reports(known, cluster=cluster).of(hidden.name("secret"))
    listed = {"huawei.com/Ascend310P": "Ascend310P-0,Ascend310P-1"}
    assert said == Reported(listed, 7, "UnHealthy", 3)


def test_config_map_of_a_configuration_stays_as_it_is() -> None:
    found = config_map("volcano-system", "volcano-scheduler-configmap", "volcano-scheduler.conf", {"actions": "x"})
    assert redaction().redacted("ConfigMap", found) == found


def test_hyper_nodes_keep_the_order_of_a_walk_under_pseudonyms() -> None:
    """s9 is tried before s10, though its name comes later."""
    hidden, names = redaction(), ["s10", "s9", "s11"]
    shown = [
        hidden.redacted("HyperNode", {"metadata": {"name": name}, "spec": {"tier": 1, "members": []}}) for name in names
    ]
    tree = build_tree([read_hyper_node(each) for each in shown], [])
    assert tree.top.children == [hidden.name(name) for name in ("s9", "s10", "s11")]


@pytest.mark.anyio
async def test_a_mirrored_cluster_under_pseudonyms(tmp_path: Path) -> None:
    """Also over a restart: nobody comes again under another one."""
    journal, names = MemoryJournal(), tmp_path / "mirror.db.names"
    jobs = [vcjob(name, job_task(replicas=2, duration="0"), queue="secret-queue") for name in ("secret-a", "secret-b")]
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "secret-queue"}}
    async with cluster() as web, way_to(web) as way:
        await web.system.submit([queue, node("secret-1"), node("secret-2")])
        bound = dict[str, str]()
        for job in jobs:
            async with mirror(way, journal, names=names) as here:
                await until(here, "Node", 2)
                await web.system.submit([job])
                await idle(web.system)
                await until(here, "Pod", len(placed(web.system)))
                bound = placed(web.system)
    hidden = PseudonymFile(names).redaction
    assert {each.name: each.node for each in await decided(journal) if isinstance(each, Bind)} == {
        hidden.pod(name): hidden.name(on) for name, on in bound.items()
    }
    for stored in await journal.read(0, limit=100_000):
        assert b"secret" not in stored.payload


async def until(here: Any, kind: str, number: int) -> None:
    with anyio.fail_after(20):
        while len(await here.listed(kind)) < number:  # noqa: ASYNC110
            await anyio.sleep(0.02)
        while kind == "Pod" and len(placed(here)) < number:  # noqa: ASYNC110
            await anyio.sleep(0.02)
