"""Inter-pod affinity terms, read.

Source: kube-scheduler framework types (GetAffinityTerms), `interpodaffinity/plugin.go`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pumice.core.kube.selectors import LabelSelector, SelectorError, label_selector
from pumice.core.objects.metadata import section, text_map

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.core.objects.metadata import Object
    from pumice.core.objects.pod_template import PodTemplate

Labels = dict[str, str]
_NO_LABELS: Labels = {}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """One term: pods of these namespaces (named, or selected by their labels) that the selector matches, per value of
    `key`.

    `weight`: of a preferred term, negative for anti-affinity; 0 for a required one.
    """

    key: str
    selector: LabelSelector
    namespaces: frozenset[str]
    namespace_selector: LabelSelector
    weight: int = 0

    def matches(self, namespace: str, labels: Labels, namespace_labels: Labels = _NO_LABELS) -> bool:
        """Whether a pod of that namespace (and the namespace's labels) is meant."""
        named = namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        return named and self.selector.matches(labels)

    def reach(self) -> frozenset[str] | None:
        """The namespaces it looks into, None for all. Only for the terms of a pod to be placed, after `resolved`."""
        return None if self.namespace_selector.matches(_NO_LABELS) else self.namespaces


@dataclass(frozen=True, slots=True)
class PodTerms:
    """The terms of one pod. Preferred ones hold both kinds, anti-affinity with negative weights."""

    affinity: tuple[AffinityTerm, ...] = ()
    anti: tuple[AffinityTerm, ...] = ()
    preferred: tuple[AffinityTerm, ...] = ()


def _term(listed: Mapping[str, Any], namespace: str, weight: int = 0) -> AffinityTerm:
    named: list[str] = listed.get("namespaces") or []
    selector: dict[str, Any] | None = listed.get("namespaceSelector")
    return AffinityTerm(
        key=str(listed.get("topologyKey") or ""),
        selector=label_selector(listed.get("labelSelector")),
        namespaces=frozenset(named if named or selector is not None else (namespace,)),
        namespace_selector=label_selector(selector),
        weight=weight,
    )


def _required(affinity: Mapping[str, Any], namespace: str) -> tuple[AffinityTerm, ...]:
    listed: list[dict[str, Any]] = affinity.get(_REQUIRED) or []
    return tuple(_term(one, namespace) for one in listed)


def _preferred(affinity: Mapping[str, Any], namespace: str, sign: int) -> tuple[AffinityTerm, ...]:
    listed: list[dict[str, Any]] = affinity.get(_PREFERRED) or []
    return tuple(
        _term(section(one, "podAffinityTerm"), namespace, sign * int(one.get("weight") or 0)) for one in listed
    )


def terms_of(template: PodTemplate, namespace: str) -> PodTerms:
    """All terms of a pod of that namespace. Raises SelectorError for a selector that is no valid one."""
    together, apart = section(template.affinity, "podAffinity"), section(template.affinity, "podAntiAffinity")
    return PodTerms(
        affinity=_required(together, namespace),
        anti=_required(apart, namespace),
        preferred=(*_preferred(together, namespace, 1), *_preferred(apart, namespace, -1)),
    )


def readable_terms_of(template: PodTemplate, namespace: str) -> PodTerms:
    """The terms of a pod that runs already: a kind of terms that cannot be read does not count."""
    try:
        return terms_of(template, namespace)
    except SelectorError:
        pass
    found = PodTerms()
    for kind, part in (("affinity", "podAffinity"), ("anti", "podAntiAffinity")):
        try:
            found = replace(found, **{kind: _required(section(template.affinity, part), namespace)})
        except SelectorError:
            continue
    return found


def namespace_labels(objects: Mapping[str, Mapping[str, Object]], namespace: str) -> Labels:
    """The labels of a namespace, none when it is not known."""
    known = objects.get("Namespace", {}).get(namespace)
    return text_map(section(known, "metadata").get("labels")) if known else _NO_LABELS


def resolved(term: AffinityTerm, objects: Mapping[str, Mapping[str, Object]]) -> AffinityTerm:
    """The term of a pod to be placed, with the namespaces that its selector finds added to the named ones."""
    selector = term.namespace_selector
    if selector.empty or selector.nothing:
        return term
    found = (name for name in objects.get("Namespace", {}) if selector.matches(namespace_labels(objects, name)))
    return replace(term, namespaces=term.namespaces.union(found))


def fixed_label(term: AffinityTerm) -> tuple[tuple[str, str], ...]:
    """Labels of which a matching pod must have one; empty when the selector demands no particular value."""
    for wanted in term.selector.requirements:
        if wanted.operator == "In":
            return tuple((wanted.key, value) for value in dict.fromkeys(wanted.values))
    return ()
