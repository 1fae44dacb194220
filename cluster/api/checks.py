# SPDX-License-Identifier: Apache-2.0
"""The checks of an object before it is stored, in their order; the first refusal counts.

Of a new object (`NEW`), and why each stands where it does:

1. `types`: nulls are absent fields, and every field has the type of its schema. All that follows reads fields as of
   their types: before this check a wrong one would be a crash, not a refusal.
2. `definition`: what the kind's CustomResourceDefinition says: fields that it does not know go, defaults come, values
   are judged. Quantities of Kubernetes' kinds get one form. Defaults of admission stand on these.
3. `name`: the metadata that only a server writes goes, a name is generated, names and labels are valid. What follows
   looks up by the name.
4. `namespace`: it exists and does not end. Kubernetes (NamespaceLifecycle) too reports it before a name that exists.
5. `namesake`: nothing is stored under the name. What admission fills in may depend on what is stored.
6. `defaults`: the first status, what only a served cluster adds, what admission fills in. Rules are about the object
   as it will be stored.
7. `permission`: what admission forbids (403). As in Kubernetes that comes before what is not valid (422).
8. `rules`: Volcano's definition for kinds with defaults of their own in admission, then admission's rules.
9. `quota`: the namespace's quota has room. Last of all that may refuse: what is refused otherwise uses none.

A changed object passes `types` and `definition`, then `identity` (409: it was made from another version), and once its
status and its server's metadata are those that are stored, `rules_of_change`. An object that a cluster had
(`pumice.cluster.api.origin`) passes `types` alone. The checks are the same for all: over HTTP, from a file, or as
a controller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from pumice.cluster.api import metadata, refusals
from pumice.cluster.api.admission import ADMISSION, Admission, admission_of
from pumice.cluster.api.admission.namespaces import ending, is_missing, not_there
from pumice.cluster.api.admission.quotas import over_quota
from pumice.cluster.api.admission.served import fill_in_served, served_problems
from pumice.cluster.api.definitions.pruning import prune, settle
from pumice.cluster.api.definitions.rules import change_problems, creation_problems
from pumice.cluster.api.definitions.values import value_problems
from pumice.cluster.api.definitions.volcano import fill_in_defaults, volcano_problems
from pumice.cluster.api.definitions.work import TooDearError, Work
from pumice.cluster.api.kinds import Kind
from pumice.cluster.api.names import generated_name
from pumice.cluster.api.object_tables import Key
from pumice.cluster.api.refusals import Cause
from pumice.cluster.api.registry import FoundObject, FoundRecord, Registry
from pumice.cluster.api.schema.field_types import status_problems, type_problems
from pumice.cluster.api.schema.shapes import Shape, field_shape, shape_of_kind
from pumice.cluster.api.schema.wrong_fields import settle_quantities
from pumice.cluster.api.verbs.requests import SUBMIT, RequestMoment, drop_nulls, name_of
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object
from pumice.core.objects.soundness import unsound

# apiserver's `maxNameGenerationCreateAttempts` (`pkg/registry/generic/registry/store.go`).
_GENERATE_ATTEMPTS: Final = 8


class NewObject(Struct):
    """A new object, which the checks change. `nulls`: it may contain some; `uid`: the one that it will get;
    `make_namespace`: makes one that a manifest at the start only names.
    """

    registry: Registry
    kind: Kind
    obj: Object
    moment: RequestMoment
    uid: str
    make_namespace: Callable[[str, RequestMoment], Refused | None]
    nulls: bool = True
    dry_run: bool = False
    key: Key = ("", "", "")

    @property
    def admission(self) -> Admission:
        """Return the rules of its kind."""
        return admission_of(self.kind.key)

    def invalid(self, causes: list[Cause], webhook: str = "") -> Refused | None:
        """Return the refusal for these causes; None without causes."""
        name = self.key[2] or name_of(self.obj)
        return refusals.invalid(self.kind, name, causes, webhook) if causes else None


# --- The checks of a new object


def types(new: NewObject) -> Refused | None:
    """Refuse fields of another type than the schema's."""
    return new.invalid(shape_problems(new.registry, new.kind, new.obj, nulls=new.nulls))


def definition(new: NewObject) -> Refused | None:
    """Settle the object by its definition, and return the refusal of disallowed content."""
    if new.kind.is_custom and new.registry.is_ending(new.kind):
        return refusals.not_allowed("create not allowed while custom resource definition is terminating")
    causes = definition_problems(new.registry, new.kind, new.obj)
    return new.invalid(causes or rules_of_creation(new.registry, new.kind, new.obj))


def name(new: NewObject) -> Refused | None:
    """Settle the metadata, and refuse names and labels that Kubernetes does not allow."""
    meta, kind = metadata.settle(new.obj, new.kind), new.kind
    if not meta.get("name") and (base := meta.get("generateName")):
        tables, seed = new.registry.tables, new.registry.seed
        # Drawn from the seed and the revision, so that a replay makes the same names.
        for attempt in range(_GENERATE_ATTEMPTS):
            meta["name"] = generated_name(base, seed, tables.revision + 1, attempt)
            if tables.get((kind.key, meta.get("namespace") or "", meta["name"])) is None:
                break
    if causes := metadata.problems(meta, kind):
        return refusals.invalid(kind, meta.get("name") or "", causes)
    new.key = (kind.key, meta.get("namespace") or "", meta["name"])
    return None


def namespace(new: NewObject) -> Refused | None:
    """Return why the namespace takes no new object; one that a manifest at the start only names is made for it."""
    if not new.kind.namespaced:
        return None
    inside, tables = new.key[1], new.registry.tables
    if new.registry.served and is_missing(tables, inside):
        # Manifests at the start of a run name namespaces that no one has created; a client's request gets 404, as in
        # Kubernetes.
        made_here = new.moment.user == SUBMIT and not new.dry_run
        return new.make_namespace(inside, new.moment) if made_here else not_there(inside)
    return ending(tables, new.kind, inside, new.key[2])


def namesake(new: NewObject) -> Refused | None:
    """Refuse a second object of the name."""
    there = new.registry.tables.get(new.key) is not None
    return refusals.already_exists(new.kind, new.key[2]) if there else None


def defaults(new: NewObject) -> Refused | None:
    """Fill in what a new object leaves out."""
    admission, lookup, obj = new.admission, new.registry.lookup, new.obj
    if new.kind.drops_status:
        # Kubernetes drops a status that comes with a new object of a kind with a status subresource.
        obj.pop("status", None) if admission.initial_status is None else admission.initial_status(obj)
    if new.registry.served and new.moment.user != SUBMIT:
        fill_in_served(new.kind.key, obj, lookup)
    if admission.default is not None:
        admission.default(obj, lookup)
    return None


def permission(new: NewObject) -> Refused | None:
    """Refuse what admission forbids."""
    forbid = new.admission.forbid
    why = forbid(new.obj, new.registry.lookup) if forbid is not None else None
    return refusals.forbidden(new.kind, new.key[2], why) if why else None


def rules(new: NewObject) -> Refused | None:
    """Refuse an object that is not valid."""
    # Before the webhook's rules: a real API server checks the definition's schema first, and clients see its words.
    if causes := settled_problems(new.kind, new.obj):
        return new.invalid(causes)
    admission = new.admission
    if admission.validate is not None and (causes := admission.validate(new.obj, new.registry.lookup)):
        return new.invalid(causes, admission.webhook)
    return new.invalid(served_problems(new.kind.key, new.obj, new.uid))


def quota(new: NewObject) -> Refused | None:
    """Refuse what the quota of the namespace has no room for."""
    why = over_quota(new.registry.lookup, new.kind, new.obj) if new.kind.namespaced else None
    return refusals.forbidden(new.kind, new.key[2], why) if why else None


# The order decides which refusal a client sees. Types first, since every later check reads fields without asking their
# type; quota last, since only an object that would be stored may use any.
NEW: Final = (types, definition, name, namespace, namesake, defaults, permission, rules, quota)


ALIKE: Final = (name, namespace, namesake, quota)
"""The checks of an object whose spec is known to be right."""


def refusal_of_new(new: NewObject) -> Refused | None:
    """Run every check, and return the first refusal."""
    templates = new.registry.templates
    # Nulls are absent fields, which `types` takes out first. A served cluster fills in more, and its clients' objects
    # are seldom alike.
    template = None if new.nulls or new.registry.served else templates.of(new.kind, new.obj)
    known = None if template is None else templates.find(template)
    if known is not None:
        # before the quota, which counts what the defaults add
        new.obj["spec"], new.obj["status"] = known.spec, dict(known.status)
    for check in NEW if known is None else ALIKE:
        if (refused := check(new)) is not None:
            return refused
    if known is None and template is not None:
        templates.remember(template, new.obj)
    return None


# --- The checks of a changed object


def identity(found: FoundObject, new: Object) -> Refused | None:
    """Return a conflict when the object was made from another version, or is another one of the same name."""
    meta, before, called = new["metadata"], found.obj["metadata"], found.key[2]
    given = meta.get("resourceVersion")
    if given and given != before["resourceVersion"]:
        return refusals.modified(found.kind, called)
    if (uid := meta.get("uid")) and uid != before["uid"]:
        return refusals.other_uid(found.kind, called, uid, before["uid"])
    return None


def metadata_of_change(found: FoundObject, new: Object) -> list[Cause]:
    """Return the problems of the metadata after a change."""
    meta = new["metadata"]
    return metadata.problems(meta, found.kind) or metadata.change_problems(meta, found.obj["metadata"])


def rules_of_change(registry: Registry, found: FoundObject, new: Object) -> Refused | None:
    """Refuse a changed object that is not valid."""
    key, kind, old = found
    if causes := metadata_of_change(found, new) or settled_problems(kind, new):
        return refusals.invalid(kind, key[2], causes)
    admission, causes = admission_of(kind.key), list[Cause]()
    if admission.validate_update is not None:
        causes = admission.validate_update(old, new, registry.lookup)
    if causes := causes or _definition_rules_of_change(registry, kind, new, old):
        return refusals.invalid(kind, key[2], causes, admission.webhook)
    return None


# --- What checks share


def shape_problems(registry: Registry, kind: Kind, obj: Object, *, nulls: bool = True) -> list[Cause]:
    """Return the field of another type than the schema's; `nulls`: the object may contain some, which are absent
    fields.
    """
    # where a user's definition is, its schema says which nulls are values
    if nulls and not (kind.defined and registry.kinds.schema(kind.key) is not None):
        drop_nulls(obj, _shape(kind))
    return type_problems(kind.group, kind.version, kind.kind, obj)


def definition_problems(registry: Registry, kind: Kind, obj: Object) -> list[Cause]:
    """Settle an object by the definition of its kind, and return its problems. A Volcano kind with rules in admission
    is checked after their defaults (`settled_problems`).
    """
    if kind.defined and (schema := registry.kinds.schema(kind.key)) is not None:
        prune(obj, schema)
        return _settled(obj, schema)
    if not kind.is_custom:
        # Go's types write quantities in canonical form; a definition's schema leaves them as they came.
        settle_quantities(obj, kind.group, kind.version, kind.kind)
        return []
    fill_in_defaults(obj, kind)
    # Volcano's webhooks fill in before the schema is checked, as mutating webhooks do.
    return [] if kind.key in ADMISSION else volcano_problems(obj, kind)


def settled_problems(kind: Kind, obj: Object) -> list[Cause]:
    """Return the problems that Volcano's own definition finds in an object that admission has filled in."""
    return volcano_problems(obj, kind) if kind.is_custom and kind.key in ADMISSION else []


def changed_shape(registry: Registry, kind: Kind, obj: Object, *, nulls: bool) -> list[Cause]:
    """Return the problems that `types` and `definition` find in a changed object."""
    return shape_problems(registry, kind, obj, nulls=nulls) or definition_problems(registry, kind, obj)


def loaded_problems(kind: Kind, obj: Object, *, nulls: bool) -> list[Cause]:
    """Return the problems for which no reader here could read an existing object; nulls are absent fields."""
    if problem := unsound(obj):
        return [Cause("", "FieldValueInvalid", f"Invalid value: {problem}")]
    if nulls and not kind.defined:
        drop_nulls(obj, _shape(kind))
    return type_problems(kind.group, kind.version, kind.kind, obj)


def changed_status(registry: Registry, found: FoundRecord, new: Object, *, nulls: bool, typed: bool) -> list[Cause]:
    """Return the problems of `changed_shape` when only the status has changed: the other fields were settled when they
    were written.

    `nulls`: there may be some in the status; `typed`: of what is new in it the types are known already.
    """
    if found.whole:
        return changed_shape(registry, found.kind, new, nulls=nulls)
    if typed:
        return []
    if nulls:
        drop_nulls(new["status"], field_shape(_shape(found.kind), "status"))
    return status_problems(found.kind.key, new["status"])


def _shape(kind: Kind) -> Shape:
    return shape_of_kind(kind.group, kind.version, kind.kind)


def rules_of_creation(registry: Registry, kind: Kind, new: Object) -> list[Cause]:
    """Return what the rules of a defined kind about changes say about a new object."""
    schema = registry.kinds.schema(kind.key) if kind.defined else None
    return [] if schema is None else _within_work(lambda: creation_problems(new, schema, Work(new)))


def _definition_rules_of_change(registry: Registry, kind: Kind, new: Object, old: Object) -> list[Cause]:
    schema = registry.kinds.schema(kind.key) if kind.defined else None
    return [] if schema is None else _within_work(lambda: change_problems(new, old, schema, Work(new)))


def _settled(obj: Object, schema: Object) -> list[Cause]:
    """Fill in what a schema says, and see whether all is as it says."""

    def judge() -> list[Cause]:
        work = Work(obj)
        settle(obj, schema, work)
        return value_problems(obj, schema, work)

    return _within_work(judge)


def _within_work(judge: Callable[[], list[Cause]]) -> list[Cause]:
    try:
        return judge()
    # A refusal and no crash: the schema is a user's, and so is the object.
    except TooDearError as error:
        return [Cause("", "FieldValueInvalid", f"Invalid value: {error}")]
