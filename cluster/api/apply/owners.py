"""`metadata.managedFields`: who owns which fields, read from an object and written back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pumice.cluster.api.apply.field_sets import FieldSet, field_set, from_fields, to_fields
from pumice.cluster.api.apply.paths import field
from pumice.cluster.api.schema.plain import is_list, is_map
from pumice.core.objects.metadata import Object, parse_time, section

APPLY: Final = "Apply"
UPDATE: Final = "Update"
_MOST_UPDATERS: Final = 10
_OLD: Final = "ancient-changes"
_FIELDS_V1: Final = "FieldsV1"


class Manager(NamedTuple):
    """Who: a name, by which operation, through which subresource. An applier is the same in every version."""

    name: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    def shown(self) -> str:
        """What conflicts call it."""
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


class Owned(NamedTuple):
    """What a manager owns, in which version of the kind it said so, and when it last did."""

    paths: FieldSet
    api_version: str
    time: str = ""


Managers = dict[Manager, Owned]
"""Owners of an object's fields."""

_NOT_OWNED: Final = field_set(
    [(field("apiVersion"),), (field("kind"),), (field("metadata"),)]
    + [
        (field("metadata"), field(name))
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ]
)


def ownable(paths: FieldSet, reset: tuple[str, ...]) -> FieldSet:
    """The fields that can have an owner: not those of the server, nor those that the write does not reach."""
    return (paths - _NOT_OWNED).without_branches({field(name) for name in reset})


def read_managers(obj: Object) -> Managers:
    """The owners that an object tells; none when its managedFields are not well formed."""
    entries: Any = section(obj, "metadata").get("managedFields")
    found: Managers = {}
    for each in entries if is_list(entries) else []:
        if not is_map(each) or each.get("operation") not in (APPLY, UPDATE) or each.get("fieldsType") != _FIELDS_V1:
            return {}
        version, operation = _text(each, "apiVersion"), each["operation"]
        who = Manager(
            _text(each, "manager"), operation, version if operation == UPDATE else "", _text(each, "subresource")
        )
        found[who] = Owned(from_fields(each.get("fieldsV1")), version, _text(each, "time"))
    return found


def write_managers(obj: Object, managers: Mapping[Manager, Owned]) -> Object:
    """The object with these owners: appliers first, then by time and name. Its metadata is a new mapping."""
    meta = {name: value for name, value in section(obj, "metadata").items() if name != "managedFields"}
    listed = sorted(managers.items(), key=lambda pair: _place(*pair))
    entries = [_entry(who, owned) for who, owned in listed if owned.paths]
    if entries:
        meta["managedFields"] = entries
    return {**obj, "metadata": meta}


def without_managers(obj: Object) -> Object:
    """The object without managedFields."""
    return write_managers(obj, {}) if "managedFields" in section(obj, "metadata") else obj


def capped(managers: Managers) -> Managers:
    """At most ten that came by updates: the oldest of one version become one."""
    updaters = [who for who in managers if who.operation == UPDATE]
    excess = len(updaters) - _MOST_UPDATERS
    if excess <= 0:
        return managers
    result = dict(managers)
    first: dict[str, Manager] = {}
    for who in sorted(updaters, key=lambda who: (_moment(managers[who].time), who)):
        if excess <= 0:
            break
        if who.api_version not in first:
            first[who.api_version] = who
            continue
        bucket = Manager(_OLD, UPDATE, who.api_version)
        if bucket not in result:
            result[bucket] = result.pop(first[who.api_version])
        if who != bucket:
            owned = result.pop(who)
            result[bucket] = Owned(result[bucket].paths | owned.paths, owned.api_version, owned.time)
            excess -= 1
    return result


def _place(who: Manager, owned: Owned) -> tuple[str, float, str, str, str]:
    return who.operation, _moment(owned.time), who.name, owned.api_version, who.subresource


def _entry(who: Manager, owned: Owned) -> Object:
    entry: Object = {"manager": who.name, "operation": who.operation, "apiVersion": owned.api_version}
    if owned.time:
        entry["time"] = owned.time
    entry |= {"fieldsType": _FIELDS_V1, "fieldsV1": to_fields(owned.paths)}
    if who.subresource:
        entry["subresource"] = who.subresource
    return entry


def _text(entry: Object, name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""


def _moment(text: str) -> float:
    try:
        return parse_time(text)
    except ValueError:  # a client may write what it likes there
        return 0.0
