"""Field types of LimitRanges; see `pumice.cluster.api.admission.shapes.kind_shapes`."""

from __future__ import annotations

from pumice.cluster.api.admission.shapes.pod_shapes import Amounts, KubernetesType, Metadata, Text


class LimitItem(KubernetesType):
    """The limits of one sort of thing."""

    type: Text = None
    max: Amounts = None
    min: Amounts = None
    default: Amounts = None
    default_request: Amounts = None
    max_limit_request_ratio: Amounts = None


class LimitSpec(KubernetesType):
    """All of them."""

    limits: list[LimitItem] | None = None


class LimitRange(KubernetesType):
    """A LimitRange."""

    metadata: Metadata
    spec: LimitSpec | None = None
