# SPDX-License-Identifier: Apache-2.0
"""CustomResourceDefinitions: names, versions and schemas (source: validation of Kubernetes' apiextensions).

Versions of a kind have the same fields, so a conversion webhook is not asked.
"""

from __future__ import annotations

from typing import Final

from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.definitions.naming import names_of
from pumice.cluster.api.definitions.structure import structure_problems
from pumice.cluster.api.names import label_problem, subdomain_problem
from pumice.cluster.api.refusals import Cause, duplicate, forbidden_field, invalid_value, required, unsupported
from pumice.core.objects.metadata import Object, rows, section

DEFINITION: Final = "CustomResourceDefinition"
_SCOPES: Final = ("Cluster", "Namespaced")
_FIXED: Final = ("group", "scope")
_ACCEPTED: Final = (
    ("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
    ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted"),
)
_REFUSED: Final = (
    ("NamesAccepted", "False", "NameConflict", ""),
    ("Established", "False", "NotAccepted", "not all names are accepted"),
)
"""The text of conditions: type, status, reason, message ("": which names are taken)."""


def default(definition: Object, _lookup: Lookup) -> None:
    """Fill in names that follow from the kind, and no conversion."""
    spec = definition["spec"]
    names: Object = spec.setdefault("names", {})
    if kind := names.get("kind"):
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    spec.setdefault("conversion", {"strategy": "None"})
    for version in rows(spec, "versions"):
        version.setdefault("served", False)
        version.setdefault("storage", False)


def validate(definition: Object, _lookup: Lookup) -> list[Cause]:
    """Return all problems of a new definition."""
    spec = definition["spec"]
    found = _names_problems(spec)
    wanted = f"{section(spec, 'names').get('plural')}.{spec.get('group')}"
    if not found and definition["metadata"]["name"] != wanted:
        why = 'must be spec.names.plural+"."+spec.group'
        found.append(invalid_value("metadata.name", definition["metadata"]["name"], why))
    if (scope := spec.get("scope")) not in _SCOPES:
        found.append(unsupported("spec.scope", scope, _SCOPES) if scope else required("spec.scope"))
    return found + _version_problems(spec)


def validate_update(old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed definition. Group, scope, kind and plural are fixed; a version with stored
    objects stays.
    """
    default(new, lookup)
    found = [
        forbidden_field(f"spec.{part}", "field is immutable")
        for part in _FIXED
        if old["spec"].get(part) != new["spec"].get(part)
    ]
    before, after = old["spec"]["names"], section(new["spec"], "names")
    found += [
        forbidden_field(f"spec.names.{part}", "field is immutable")
        for part in ("plural", "kind")
        if before.get(part) != after.get(part)
    ]
    left = {version["name"] for version in rows(new["spec"], "versions")}
    for index, name in enumerate(section(old, "status").get("storedVersions") or ()):
        if name not in left:
            why = "missing from spec.versions; must remain in spec.versions until no objects are stored in it"
            found.append(invalid_value(f"status.storedVersions[{index}]", name, why))
    return found + validate(new, lookup)


def settle(definition: Object, lookup: Lookup, now: str) -> None:
    """Record whether the definition's names are free, and which versions have stored objects. Free names are served at
    once.
    """
    status: Object = dict(section(definition, "status"))
    taken = _taken(definition, lookup)
    said = _REFUSED if taken else _ACCEPTED
    if not taken:
        status["acceptedNames"] = dict(definition["spec"]["names"])
    status.setdefault("acceptedNames", {"plural": "", "kind": ""})
    before = rows(status, "conditions")
    in_use = ", ".join(f'"{name}" is already in use' for name in taken)
    written = [_condition(each, message or in_use, before, now) for *each, message in said]
    status["conditions"] = [
        *written,
        *(each for each in before if each["type"] not in ("NamesAccepted", "Established")),
    ]
    stored = [version["name"] for version in rows(definition["spec"], "versions") if version["storage"]]
    status["storedVersions"] = list(dict.fromkeys([*(status.get("storedVersions") or ()), *stored]))
    definition["status"] = status


def _condition(said: list[str], message: str, before: list[Object], now: str) -> Object:
    name, status, reason = said
    old = next((each for each in before if each["type"] == name and each["status"] == status), None)
    since = old["lastTransitionTime"] if old else now
    return {"type": name, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}


def _taken(definition: Object, lookup: Lookup) -> list[str]:
    """Return the names of the definition that another definition of the group has."""
    spec, name = definition["spec"], definition["metadata"]["name"]
    resources, kinds = names_of(spec)
    for other in lookup.all(DEFINITION):
        if other["metadata"]["name"] == name or other["spec"]["group"] != spec["group"]:
            continue
        their_resources, their_kinds = names_of({"names": section(section(other, "status"), "acceptedNames")})
        found = sorted(resources & their_resources) + sorted(kinds & their_kinds)
        if found:
            return found
    return []


def _names_problems(spec: Object) -> list[Cause]:
    names = section(spec, "names")
    found: list[Cause] = []
    if not (group := spec.get("group") or ""):
        found.append(required("spec.group"))
    elif problem := subdomain_problem(group):
        found.append(invalid_value("spec.group", group, problem))
    elif "." not in group:
        found.append(invalid_value("spec.group", group, "should be a domain with at least one dot"))
    for part in ("plural", "singular", "kind", "listKind"):
        name: str = names.get(part) or ""
        if not name:
            found.append(required(f"spec.names.{part}"))
        elif problem := label_problem(name.lower() if part in ("kind", "listKind") else name):
            found.append(invalid_value(f"spec.names.{part}", name, problem))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        found.append(invalid_value("spec.names.listKind", names["listKind"], "kind and listKind may not be the same"))
    for part in ("shortNames", "categories"):
        for index, name in enumerate(names.get(part) or ()):
            if problem := label_problem(name):
                found.append(invalid_value(f"spec.names.{part}[{index}]", name, problem))
    return found


def _version_problems(spec: Object) -> list[Cause]:
    versions = rows(spec, "versions")
    if not versions:
        return [required("spec.versions", "must have at least one version")]
    found: list[Cause] = []
    seen: set[str] = set()
    for index, version in enumerate(versions):
        path, name = f"spec.versions[{index}]", version["name"]
        if problem := label_problem(name):
            found.append(invalid_value(f"{path}.name", name, problem))
        if name in seen:
            found.append(duplicate(f"{path}.name", name))
        seen.add(name)
        schema = section(version, "schema").get("openAPIV3Schema")
        if schema is None:
            found.append(required(f"{path}.schema.openAPIV3Schema", "schemas are required"))
        else:
            found += structure_problems(schema, f"{path}.schema.openAPIV3Schema")
        found += _scale_problems(section(section(version, "subresources"), "scale"), f"{path}.subresources.scale")
    if sum(version["storage"] for version in versions) != 1:
        why = "must have exactly one version marked as storage version"
        found.append(invalid_value("spec.versions", [version["name"] for version in versions], why))
    return found


def _scale_problems(scale: Object, path: str) -> list[Cause]:
    if not scale:
        return []
    found: list[Cause] = []
    for part, under in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        where: str = scale.get(part) or ""
        if not where:
            found.append(required(f"{path}.{part}"))
        elif not where.startswith(under):
            found.append(invalid_value(f"{path}.{part}", where, f"should be a json path under {under.rstrip('.')}"))
    return found
