"""Field types of metadata, pods and pod templates; see `pumice.cluster.api.admission.shapes.kind_shapes`."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Struct

from pumice.cluster.api.admission.amounts import Amount

Text = str | None
Whole = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""A number as Kubernetes has most of them: the columns of a view have room for no larger one."""
Number = Whole | None
Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None
Texts = dict[str, str] | None
Amounts = dict[str, Amount] | None
Anything = list[dict[str, Any]] | None


class KubernetesType(Struct, rename="camel", gc=False):
    """Fields are named in snake case here and in camel case in the object."""


class OwnerReference(KubernetesType):
    uid: str
    kind: str
    name: str
    api_version: Text = None
    controller: bool | None = None


class Metadata(KubernetesType):
    name: Text = None
    generate_name: Text = None
    namespace: Text = None
    resource_version: Text = None
    uid: Text = None
    labels: Texts = None
    annotations: Texts = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerReference] | None = None


class Resources(KubernetesType):
    requests: Amounts = None
    limits: Amounts = None


class Port(KubernetesType):
    container_port: Number = None
    host_port: Number = None
    host_ip: Text = msgspec.field(default=None, name="hostIP")
    protocol: Text = None
    name: Text = None


class Container(KubernetesType):
    name: Text = None
    image: Text = None
    resources: Resources | None = None
    ports: list[Port] | None = None
    env: Anything = None
    volume_mounts: Anything = None
    restart_policy: Text = None


class Toleration(KubernetesType):
    key: Text = None
    operator: Text = None
    value: Text = None
    effect: Text = None
    toleration_seconds: Long = None


class Requirement(KubernetesType):
    key: str
    operator: str
    values: list[str] | None = None


class LabelSelector(KubernetesType):
    match_labels: Texts = None
    match_expressions: list[Requirement] | None = None


class NodeTerm(KubernetesType):
    match_expressions: list[Requirement] | None = None
    match_fields: list[Requirement] | None = None


class NodeTerms(KubernetesType):
    node_selector_terms: list[NodeTerm]


class PreferredNodeTerm(KubernetesType):
    weight: Whole
    preference: NodeTerm


class NodeAffinity(KubernetesType):
    required_during_scheduling_ignored_during_execution: NodeTerms | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredNodeTerm] | None = None


class PodTerm(KubernetesType):
    topology_key: str
    label_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class PreferredPodTerm(KubernetesType):
    weight: Whole
    pod_affinity_term: PodTerm


class PodAffinity(KubernetesType):
    required_during_scheduling_ignored_during_execution: list[PodTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredPodTerm] | None = None


class Affinity(KubernetesType):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Spread(KubernetesType):
    topology_key: str
    max_skew: Whole
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: Number = None


class Gate(KubernetesType):
    name: str


class PodSpec(KubernetesType):
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: Amounts = None
    node_name: Text = None
    node_selector: Texts = None
    scheduler_name: Text = None
    priority: Number = None
    priority_class_name: Text = None
    preemption_policy: Text = None
    restart_policy: Text = None
    termination_grace_period_seconds: Long = None
    tolerations: list[Toleration] | None = None
    affinity: Affinity | None = None
    topology_spread_constraints: list[Spread] | None = None
    scheduling_gates: list[Gate] | None = None
    host_network: bool | None = None
    hostname: Text = None
    subdomain: Text = None
    volumes: Anything = None
    resource_claims: Anything = None


class PodStatus(KubernetesType):
    phase: Text = None
    conditions: Anything = None
    nominated_node_name: Text = None
    container_statuses: Anything = None


class Pod(KubernetesType):
    metadata: Metadata
    spec: PodSpec | None = None
    status: PodStatus | None = None


class Template(KubernetesType):
    metadata: Metadata | None = None
    spec: PodSpec | None = None
