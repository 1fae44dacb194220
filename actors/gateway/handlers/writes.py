# SPDX-License-Identifier: Apache-2.0
"""POST, PUT, PATCH and DELETE of objects: each becomes one message to the api."""

from __future__ import annotations

from typing import Any, Final

from pumice.actors.gateway.forms import answer_object, answer_status, form_of, writer
from pumice.actors.gateway.handlers import grants
from pumice.actors.gateway.problems import PATCH_TYPES, bad_request, invalid, success, unsupported_media, wrong_method
from pumice.actors.gateway.request.bodies import media_type, packed, read_object, read_value
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.request.paths import Target
from pumice.actors.gateway.request.query import Form, WriteOptions, dry_run, list_options, write_options
from pumice.actors.gateway.request.selection import selection
from pumice.actors.gateway.request.versions import is_turned, stored
from pumice.actors.gateway.site import Site
from pumice.actors.gateway.webhooks import passage
from pumice.cluster.api import schema
from pumice.cluster.api.kinds import Kind
from pumice.cluster.rbac.rules import User
from pumice.core.messages import commands
from pumice.core.messages.replies import Accepted
from pumice.core.objects.metadata import Object, is_list, is_mapping, mapping, section
from pumice.storage import codec

# --- fieldValidation

APPLY: Final = "apply"
_SIGNERS: Final = ("username", "groups", "uid", "extra")
"""Fields of a CertificateSigningRequest about its author."""


def fitting(
    site: Site, exchange: Exchange, row: Kind, obj: Object, form: Form, *, patch: str = ""
) -> tuple[Object, list[str]]:
    """Return the object without fields that its kind does not have, and the warnings; `patch`: its form, if it is one.

    Raises ApiError (400) when the client wants no field passed over (Strict), and for an apply always. Fields that the
    text says twice are looked for only when the client asks for validation by name: that is a second reading of it.
    """
    shape = schema.shape_of_kind(row.group, row.version, row.kind, site.kinds.schema(row.key))
    if patch == APPLY and (places := schema.misplaced_fields(obj, shape)):
        raise bad_request(_untyped(row, obj, [path for path, _ in places]))
    # what is applied was gone through just now; most that is not patched is checked by its compiled type
    sound = patch == APPLY or (not patch and schema.is_described(obj, row.group, row.version, row.kind))
    unknown = [] if sound else schema.unknown_fields(obj, shape, patch=bool(patch))
    found = unknown + (schema.duplicate_fields(exchange.json_text) if form in ("Strict", "Warn") else [])
    if found and form == "Strict":
        raise bad_request(f"strict decoding error: {', '.join(found)}")
    kept = schema.pruned(obj, shape) if unknown else obj
    return kept, [] if form == "Ignore" else found


def demand_type(applied: Object, api_version: str) -> None:
    """Check that an applied object names its version and kind, as Kubernetes does. Raises ApiError (400)."""
    if not applied.get("apiVersion"):
        why = "Incorrect version specified in apply patch. Specified patch version: , expected:"
        raise bad_request(f"{why} {api_version}")
    if not applied.get("kind"):
        raise bad_request("failed to create typed patch object: the patch states no kind")


def _untyped(row: Kind, obj: Object, paths: list[str]) -> str:
    """Return the message of Kubernetes' field manager about an applied object whose fields are not in its schema."""
    meta = section(obj, "metadata")
    name = "/".join(each for each in (meta.get("namespace"), meta.get("name")) if each)
    found = [f".{path}: field not declared in schema" for path in paths]
    told = found[0] if len(found) == 1 else "\n  ".join(("errors:", *found))
    return f"failed to create typed patch object ({name}; {row.api_version}, Kind={row.kind}): {told}"


FORMS: Final = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}

# Those whose store in Kubernetes' `pkg/registry` sets ReturnDeletedObject.
_SHOWN_GONE: Final = (
    "CSIDriver CSINode DeviceClass Namespace PersistentVolume PersistentVolumeClaim Pod PodTemplate ResourceClaim "
    "ResourceClaimTemplate ResourceQuota ResourceSlice Service ServiceAccount StorageClass VolumeAttachment"
)
SHOWN_GONE: Final = frozenset(_SHOWN_GONE.split())
"""Kinds whose objects are answered as they were last when they have gone; of others a Status tells."""


def who(exchange: Exchange, options: WriteOptions) -> Object:
    """Return what every write carries about its sender: the client's name, and the owner of the fields, if it names
    one."""
    return {"user": exchange.agent, "manager": options.manager, "dry_run": options.dry_run}


async def create(site: Site, exchange: Exchange, target: Target, row: Kind) -> None:
    """Answer POST to a collection."""
    options = write_options(exchange.query)
    obj = await read_object(exchange, site.settings.body_limit)
    # First: it turns other versions into the stored one, by whose schema `fitting` looks at the fields.
    fit(obj, target, row, exchange.user)
    obj, warnings = fitting(site, exchange, row, obj, options.validation)
    message = commands.Create(packed(obj), **who(exchange, options))
    if site.hooks:
        message, said = await passage.creation(site, exchange.user, target, row, message)
        warnings += said
    answer = await grants.carry_out(site, exchange.user, row, message)
    await show(site, exchange, target, row, answer, 201, warnings)


async def replace(site: Site, exchange: Exchange, target: Target, row: Kind) -> None:
    """Answer PUT of an object, or of its status."""
    options = write_options(exchange.query, "UpdateOptions")
    obj = await read_object(exchange, site.settings.body_limit)
    _check_name(obj, target)
    fit(obj, target, row)
    obj, warnings = fitting(site, exchange, row, obj, options.validation)
    message = commands.Update(packed(obj), subresource=target.subresource, **who(exchange, options))
    answer = await _written(site, exchange.user, target, row, message, warnings)
    await show(site, exchange, target, row, answer, 200, warnings)


async def patch(site: Site, exchange: Exchange, target: Target, row: Kind) -> None:
    """Answer PATCH of an object, or of its status."""
    media = media_type(exchange)
    form = FORMS.get(media)
    if form is None:
        raise unsupported_media(media, PATCH_TYPES)
    options = write_options(exchange.query, "PatchOptions")
    _check_apply(form, options)
    body = await _patch_body(site, exchange, form, target, row)
    warnings: list[str] = []
    if form in ("merge", "strategic") and is_turned(target.api_version, row.kind):
        # A patch need not name its kind, by which the conversion is found.
        turned = stored({**body, "kind": row.kind}, target.api_version)
        # It would name the request's version, and the stored object has another.
        body = {name: value for name, value in turned.items() if name != "apiVersion"}
    if form != "json":
        body, warnings = fitting(site, exchange, row, body, options.validation, patch=form)
    message = commands.Patch(
        row.key,
        target.namespace,
        target.name,
        packed(body),
        form=form,
        subresource=target.subresource,
        force=bool(options.force),
        **who(exchange, options),
    )
    answer = await _written(site, exchange.user, target, row, message, warnings)
    await show(site, exchange, target, row, answer, 201 if answer.created else 200, warnings)


async def _written(
    site: Site, user: User, target: Target, row: Kind, message: commands.Update | commands.Patch, warnings: list[str]
) -> Accepted:
    """Return a change after the webhooks, whose warnings are added."""
    if not site.hooks:
        return await grants.carry_out(site, user, row, message)
    passed, said = await passage.change(site, user, target, row, message)
    warnings += said
    return await grants.carry_out(site, user, row, passed)


async def delete(site: Site, exchange: Exchange, target: Target, row: Kind) -> None:
    """Answer DELETE of one object."""
    options = await delete_options(site, exchange)
    message = commands.Delete(row.key, target.namespace, target.name, user=exchange.agent, **options)
    warnings = await passage.removal(site, exchange.user, target, row, message) if site.hooks else []
    # Read before the deletion: afterwards there is no object left to show.
    before = await site.ask(commands.Get(row.key, target.namespace, target.name)) if row.key in SHOWN_GONE else None
    answer = await grants.carry_out(site, exchange.user, row, message)
    if before is not None and not answer.blob:
        answer = before
    if answer.blob:
        await show(site, exchange, target, row, answer, 200, warnings)
        return
    details = {"name": target.name, "group": row.group, "kind": row.plural, "uid": answer.uid}
    await answer_status(exchange, 200, success({name: value for name, value in details.items() if value}))


async def delete_collection(site: Site, exchange: Exchange, target: Target, row: Kind) -> None:
    """Answer DELETE of all objects that a list would show, in one namespace. Raises ApiError (405) without a namespace,
    and for namespaces: like a Kubernetes server, it deletes these one by one.
    """
    if (row.namespaced and not target.namespace) or row.key == "Namespace":
        raise wrong_method(exchange.method)
    chosen = list_options(exchange.query)
    selected = selection(row, target.namespace, chosen.labels, chosen.fields)
    options = await delete_options(site, exchange)
    _, blobs = await site.listing(row.key, selected.namespace or None)
    gone: list[Object] = []
    async for obj in site.chosen(selected, blobs):
        meta = section(obj, "metadata")
        message = commands.Delete(row.key, meta.get("namespace") or "", meta["name"], user=exchange.agent, **options)
        if site.hooks:
            await passage.removal(site, exchange.user, target, row, message)
        await site.ask_if_there(message)
        gone.append(obj)
    details = {"group": row.group, "kind": row.plural}
    await answer_status(exchange, 200, success(details))


async def delete_options(site: Site, exchange: Exchange) -> Object:
    """Return DeleteOptions from the body and the query, as fields of the message. Raises ApiError (400, 422)."""
    query = exchange.query
    given = dict(await _given_options(site, exchange))
    if (grace := query.number("gracePeriodSeconds")) is not None:
        given["gracePeriodSeconds"] = grace
    if policy := query.text("propagationPolicy"):
        given["propagationPolicy"] = policy
    return delete_fields(given, query.all("dryRun"))


def delete_fields(given: Object, dry: list[str]) -> Object:
    """Return DeleteOptions as fields of the message. Raises ApiError (400, 422)."""
    grace, policy = given.get("gracePeriodSeconds"), given.get("propagationPolicy") or ""
    if given.get("orphanDependents") is not None and not policy:
        policy = "Orphan" if given["orphanDependents"] else "Background"
    _check_delete(grace, policy)
    wanted = section(given, "preconditions")
    if not isinstance(wanted, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise bad_request("preconditions: expected an object")
    return {
        "uid": _text_or_none(wanted, "uid"),
        "resource_version": _text_or_none(wanted, "resourceVersion"),
        "grace_period_s": grace,
        "propagation": policy,
        "dry_run": dry_run([*dry, *_texts(given.get("dryRun"))]),
    }


async def _given_options(site: Site, exchange: Exchange) -> Object:
    # curl and others send no body with a DELETE, and an empty text is not valid JSON.
    if exchange.header("content-length") in ("", "0") and not exchange.header("transfer-encoding"):
        return {}
    given = await read_object(exchange, site.settings.body_limit)
    if given.get("kind", "DeleteOptions") != "DeleteOptions":
        raise bad_request(f"expected DeleteOptions in the body, found {given['kind']!r}")
    return given


def _check_delete(grace: object, policy: object) -> None:
    if grace is not None and (isinstance(grace, bool) or not isinstance(grace, int)):
        raise bad_request("gracePeriodSeconds: expected a number")
    if grace is not None and not -(2**63) <= grace < 2**63:
        raise bad_request("gracePeriodSeconds: does not fit 64 bits")
    if policy not in ("", "Background", "Foreground", "Orphan"):
        known = '"Background", "Foreground", "Orphan"'
        why = f'Unsupported value: "{policy}": supported values: {known}'
        raise invalid("DeleteOptions", "", [("FieldValueNotSupported", "propagationPolicy", why)])


def _text_or_none(given: Object, name: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise bad_request(f"preconditions.{name}: expected a text")
    return value


def _texts(value: object) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise bad_request("dryRun: expected a list")
    return list(map(str, value))  # pyright: ignore[reportUnknownArgumentType]


def _check_apply(form: str, options: WriteOptions) -> None:
    if form == "apply" and not options.manager:
        why = "Required value: is required for apply patch"
        raise invalid("PatchOptions", "", [("FieldValueRequired", "fieldManager", why)], "meta.k8s.io")
    if form != "apply" and options.force is not None:
        why = "Forbidden: may not be specified for non-apply patch"
        raise invalid("PatchOptions", "", [("FieldValueForbidden", "force", why)], "meta.k8s.io")


async def _patch_body(site: Site, exchange: Exchange, form: str, target: Target, row: Kind) -> Any:
    limit = site.settings.body_limit
    body: Any = await read_value(exchange, limit, PATCH_TYPES)
    if form == "json":
        if not is_list(body):
            raise bad_request("a JSON patch is a list of operations")
        return body
    if not is_mapping(body):
        raise bad_request("a patch is an object")
    if form == "apply":
        demand_type(body, target.api_version)
        fit(body, target, row, exchange.user)
    return body


def fit(obj: Object, target: Target, row: Kind, user: User | None = None) -> None:
    """Make the object one of the path, with all that it leaves out. Raises ApiError (400) when it is another. `user`:
    its sender, where it may be new: a request for a certificate names its author.
    """
    stated = obj.setdefault("apiVersion", target.api_version)
    if obj.setdefault("kind", row.kind) != row.kind:
        raise bad_request(f"the kind in the data ({_shown(obj['kind'])}) does not match the expected kind ({row.kind})")
    if stated != target.api_version:
        why = f"the API version in the data ({_shown(stated)}) does not match the expected API version"
        raise bad_request(f"{why} ({target.api_version})")
    if is_turned(target.api_version, row.kind):
        turned = stored(obj, target.api_version)
        # In place: the callers go on with this very object.
        obj.clear()
        obj.update(turned)
    obj["apiVersion"] = row.api_version
    if user is not None and row.key == "CertificateSigningRequest":
        kept = {name: value for name, value in section(obj, "spec").items() if name not in _SIGNERS}
        obj["spec"] = {**kept, **user.told()}
    meta = obj.setdefault("metadata", {})
    if not is_mapping(meta):
        raise bad_request("metadata: expected an object")
    _fit_place(meta, target, row)


def _check_name(obj: Object, target: Target) -> None:
    """Check that an object that replaces another has a name: a body without one would empty it."""
    if not mapping(obj.get("metadata")).get("name"):
        raise bad_request(
            f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        )


def _fit_place(meta: Object, target: Target, row: Kind) -> None:
    if row.namespaced and target.namespace and (meta.get("namespace") or target.namespace) != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if row.namespaced:
        meta["namespace"] = meta.get("namespace") or target.namespace or "default"
    if not target.name:
        return
    if not meta.get("name"):
        meta["name"] = target.name
    if meta["name"] != target.name:
        why = f"the name of the object ({_shown(meta['name'])}) does not match the name on the URL ({target.name})"
        raise bad_request(why)


def _shown(value: object) -> str:
    return value[:253] if isinstance(value, str) else str(value)[:253]


async def show(
    site: Site, exchange: Exchange, target: Target, row: Kind, answer: Accepted, status: int, warnings: list[str]
) -> None:
    """Answer with the object after the write."""
    form = form_of(exchange, target.api_version, row.kind)
    write = writer(site.kinds, row, target.api_version, form, exchange.query)
    # A line break parts headers of one name: `Exchange` makes one header of each line.
    headers = {"warning": "\n".join(f'299 - "{_quoted(text)}"' for text in warnings)} if warnings else None
    if not answer.blob:
        details = {"name": target.name, "group": row.group, "kind": row.plural}
        await answer_status(exchange, status, success(details))
        return
    obj: Object = codec.unpack(answer.blob)
    await answer_object(exchange, status, write.one(obj, site.clock.now()), form, headers)


def _quoted(text: str) -> str:
    # A warning may quote a field name of the body, and a line break in it would begin another header.
    flat = "".join(letter if letter.isprintable() else " " for letter in text)
    return flat.replace("\\", "\\\\").replace('"', '\\"')
