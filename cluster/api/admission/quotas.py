# SPDX-License-Identifier: Apache-2.0
"""ResourceQuotas: new objects against those of their namespace, and objects counted for statuses (source: Kubernetes).

What is let in is added to the status immediately, so that nothing that comes right after it goes beyond; the quota
controller counts again whenever something changes, and writes only over the status that it has seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.kinds import Kind
from pumice.cluster.api.object_tables import ObjectTables
from pumice.cluster.api.registry import Registry
from pumice.cluster.kube.min_resources import Amounts, texts
from pumice.cluster.kube.quota_usage import COUNTED, OBJECTS, counts, total_of, usage_of
from pumice.core.errors import QuantityError
from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object, section
from pumice.core.quantity import Quantity, quantity_of

KIND: Final = "ResourceQuota"
_COMPUTE: Final = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")


def over_quota(lookup: Lookup, kind: Kind, obj: Object, old: Object | None = None) -> str | None:
    """Return why a quota refuses the object, or None; `old`: the stored object of an update."""
    for quota in lookup.all(KIND, obj["metadata"].get("namespace") or ""):
        if counts(quota, kind.key, obj) and (why := _problem(lookup, quota, kind, obj, old)):
            return why
    return None


def take(tables: ObjectTables, lookup: Lookup, kind: Kind, obj: Object, user: str) -> None:
    """Add the object's usage to the quotas of its namespace; the object is not in the tables yet.

    Where it counts as an object only, `pumice.cluster.api.admission.quotas` does.
    """
    namespace = obj["metadata"].get("namespace") or ""
    for quota in lookup.all(KIND, namespace):
        key = (KIND, namespace, quota["metadata"]["name"])
        record = tables.get(key)
        changed = None if record is None else with_taken(lookup, quota, kind, obj)
        if record is not None and changed is not None:
            tables.replace(key, record, changed, user, status_only=True)


def with_taken(lookup: Lookup, quota: Object, kind: Kind, obj: Object) -> Object | None:
    """Return the quota with a new object's usage; None without any."""
    if kind.key == KIND or not counts(quota, kind.key, obj):
        return None
    usage = bounded(quota, usage_of(kind.key, obj))
    # nothing of it counts there: a write would only be one more revision
    if not any(amount.sign() for amount in usage.values()):
        return None
    used = {name: _used(lookup, quota, name, kind).plus(amount) for name, amount in usage.items()}
    status = section(quota, "status")
    after = {**status, "used": {**section(status, "used"), **texts(used)}}
    return {**quota, "metadata": dict(quota["metadata"]), "status": after}


def _problem(lookup: Lookup, quota: Object, kind: Kind, obj: Object, old: Object | None) -> str | None:
    name, hard = quota["metadata"]["name"], section(section(quota, "spec"), "hard")
    if kind.key == "Pod" and (missing := _unsaid(hard, obj)):
        return f"failed quota: {name}: must specify {missing}"
    asked = bounded(quota, usage_of(kind.key, obj, kind.resource))
    if old is not None:
        before = usage_of(kind.key, old, kind.resource)
        # an update is charged for what it adds
        asked = {
            each: amount.plus(_negative(before[each])) if each in before else amount for each, amount in asked.items()
        }
    over: list[tuple[str, str, str, str]] = []
    for each, amount in sorted(asked.items()):
        used = _used(lookup, quota, each, kind)
        # what uses no more than before is let in even where the quota is exceeded already
        if amount.sign() > 0 and used.plus(amount).compare(quantity_of(hard[each])) > 0:
            over.append((each, amount.canonical(), used.canonical(), quantity_of(hard[each]).canonical()))
    if not over:
        return None
    requested, held, limited = (",".join(f"{each[0]}={each[place]}" for each in over) for place in (1, 2, 3))
    return f"exceeded quota: {name}, requested: {requested}, used: {held}, limited: {limited}"


def _negative(amount: Quantity) -> Quantity:
    return Quantity(-amount.unscaled, amount.exponent, amount.format, amount.wide)


def _unsaid(hard: Object, pod: Object) -> str:
    """Return amounts that the quota bounds and that containers of the pod leave open."""
    found: list[str] = []
    for name in sorted(hard):
        if name in _COMPUTE:
            # `cpu` alone means `requests.cpu`
            part, _, what = ("requests." + name if "." not in name else name).partition(".")
            open_ones = [
                each["name"]
                for each in section(pod, "spec").get("containers") or ()
                if not section(section(each, "resources"), part).get(what)
            ]
            if open_ones:
                found.append(f"{name} for: {','.join(sorted(open_ones))}")
    return "; ".join(found)


def bounded(quota: Object, usage: Amounts) -> Amounts:
    """Return the part of the usage that the quota bounds, as far as it is a number."""
    hard = section(section(quota, "spec"), "hard")
    return {name: amount for name, amount in usage.items() if name in hard and _is_amount(hard[name])}


def _is_amount(text: object) -> bool:
    try:
        quantity_of(text)
    except QuantityError:
        return False
    return True


def _used(lookup: Lookup, quota: Object, name: str, kind: Kind) -> Quantity:
    """Return the used amount of a resource from the status, or count it when the status has none yet."""
    said = section(section(quota, "status"), "used").get(name)
    if said is not None:
        return quantity_of(said)
    namespace = quota["metadata"].get("namespace") or ""
    # custom resources are only counted, so their number is enough
    if name == OBJECTS + kind.resource and kind.key not in COUNTED:
        return quantity_of(str(len(lookup.all(kind.key, namespace))))
    found = ((key, obj) for key in ("Pod", *COUNTED) for obj in lookup.all(key, namespace))
    total = total_of(usage_of(key, obj) for key, obj in found if counts(quota, key, obj))
    return total.get(name, quantity_of("0"))


# --- Objects counted for ResourceQuotas
# Kubernetes' quota controller watches whatever is defined; here the tables know, and the quota controller leaves
# these names alone (`cluster/kube/quota_usage.py`).

USER: Final = "resourcequota-controller"


class ObjectCounts:
    """Keeps numbers of objects for a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._tables = registry.tables

    def follow(self, changes: Sequence[Mutation]) -> None:
        """Update the quotas that these changes of one request affect."""
        if not changes or not self._tables.count(KIND):
            return
        # each namespace once, in the order of the changes
        for namespace in dict.fromkeys(change.namespace for change in changes if _is_news(change)):
            for key in [(KIND, *name) for name, _ in self._tables.of_kind(KIND, namespace)]:
                self._count(key)

    def _count(self, key: tuple[str, str, str]) -> None:
        quota = self._tables.shared(key)
        # a quota with scopes counts pods alone
        if quota is None or not counts(quota, "", {}):
            return
        hard = section(section(quota, "spec"), "hard")
        present = {name: quantity_of(str(found)) for name in hard if (found := self._present(name, key[1])) is not None}
        used = section(section(quota, "status"), "used")
        news = {name: text for name, text in texts(bounded(quota, present)).items() if used.get(name) != text}
        if news:
            self._write(key, quota, {**used, **news})

    def _write(self, key: tuple[str, str, str], quota: Object, used: Object) -> None:
        record = self._tables.get(key)
        if record is not None:
            status = {**section(quota, "status"), "used": used}
            changed = {**quota, "metadata": dict(quota["metadata"]), "status": status}
            self._tables.replace(key, record, changed, USER, status_only=True)

    def _present(self, name: str, namespace: str) -> int | None:
        """Return the number of objects with a name; None for one that another place counts."""
        if not name.startswith(OBJECTS):
            return None
        resource = name.removeprefix(OBJECTS)
        for kind in self._registry.kinds.rows():
            if kind.resource == resource and kind.namespaced and kind.key not in COUNTED and kind.key != "Pod":
                return len(self._tables.of_kind(kind.key, namespace))
        return None


def _is_news(change: Mutation) -> bool:
    if change.kind == KIND:
        # a changed quota may bound other names, which have no count yet
        return change.type != "DELETED"
    return change.type != "MODIFIED" and change.kind not in COUNTED and change.kind != "Pod"
