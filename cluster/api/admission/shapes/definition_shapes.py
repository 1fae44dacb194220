"""Field types of CustomResourceDefinitions; their schemas are checked in `pumice.cluster.api.definitions.structure`."""

from __future__ import annotations

from typing import Any

import msgspec

from pumice.cluster.api.admission.shapes.pod_shapes import KubernetesType, Metadata, Number, Text

Mapping = dict[str, Any] | None
Names = list[str] | None


class DefinitionNames(KubernetesType):
    """How the kind and its resource are called."""

    plural: Text = None
    singular: Text = None
    kind: Text = None
    list_kind: Text = None
    short_names: Names = None
    categories: Names = None


class ScalePaths(KubernetesType):
    """Where the numbers of the scale subresource stand."""

    spec_replicas_path: Text = None
    status_replicas_path: Text = None
    label_selector_path: Text = None


class Subresources(KubernetesType):
    """Which there are."""

    status: Mapping = None
    scale: ScalePaths | None = None


class VersionSchema(KubernetesType):
    """What objects of a version look like."""

    open_api_v3_schema: Mapping = msgspec.field(default=None, name="openAPIV3Schema")


class PrinterColumn(KubernetesType):
    """A column of kubectl's table."""

    name: str
    type: str
    json_path: str = msgspec.field(name="jsonPath")
    format: Text = None
    description: Text = None
    priority: Number = None


class DefinitionVersion(KubernetesType):
    """One version of the kind."""

    name: str
    served: bool = False
    storage: bool = False
    schema: VersionSchema | None = None
    subresources: Subresources | None = None
    additional_printer_columns: list[PrinterColumn] | None = None


class DefinitionSpec(KubernetesType):
    """What is defined."""

    group: Text = None
    scope: Text = None
    names: DefinitionNames | None = None
    versions: list[DefinitionVersion] | None = None
    conversion: Mapping = None
    preserve_unknown_fields: bool | None = None


class Definition(KubernetesType):
    """A CustomResourceDefinition."""

    metadata: Metadata
    spec: DefinitionSpec
    status: Mapping = None
