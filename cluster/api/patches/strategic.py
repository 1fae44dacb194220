# SPDX-License-Identifier: Apache-2.0
"""Strategic merge patches: lists merge by key or as sets where a kind's fields declare it, and directives steer the
merge.

As apimachinery's strategicpatch does it: `$patch` (replace, delete), `$retainKeys`, `$setElementOrder/…`,
`$deleteFromPrimitiveList/…`, null removes. Only the built-in kinds of Kubernetes know how; CRDs get 415 elsewhere.
"""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api import refusals
from pumice.cluster.api.schema.table import NO_RULES, Field, Rules, SchemaMessage, element, flat_fields, is_message
from pumice.config.errors import RequestError
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object, is_list, is_mapping

# --- Errors


class PatchError(RequestError):
    """A patch that contradicts itself or the kind; the sentence is for the client."""


# --- The order of merged lists


def in_order(merged: list[Any], order: list[Any], server: list[Any], key: str) -> list[Any]:
    """Return the merged list: elements of `order` in its order, others in the order of `server`.

    Both runs are merged; an element of the server's goes first only when it stood before the other one there.
    """
    place, before = positions(order, key), positions(server, key)
    names = [(name_of(each, key), each) for each in merged]
    told = sorted((pair for pair in names if pair[0] in place), key=lambda pair: place[pair[0]])
    others = [pair for pair in names if pair[0] not in place]
    result: list[Any] = []
    i = j = 0
    while i < len(others) and j < len(told):
        left, right = before.get(others[i][0]), before.get(told[j][0])
        first = left is not None and right is not None and left < right
        result.append((others[i] if first else told[j])[1])
        i, j = (i + 1, j) if first else (i, j + 1)
    return result + [each for _, each in told[j:]] + [each for _, each in others[i:]]


def check_order(change: list[Any], order: list[Any], key: str) -> None:
    """Check that the patch's elements stand in the order that its directive states. Raises PatchError."""
    # an iterator: each search goes on behind the last match, so that the order of the elements counts
    names = iter([name_of(each, key) for each in order])
    for each in change if order else []:
        directed = is_mapping(each) and "$patch" in each
        if not directed and not any(name == name_of(each, key) for name in names):
            raise PatchError(f"The order in patch list:\n{change}\n doesn't match $setElementOrder list:\n{order}\n")


def positions(items: list[Any], key: str) -> dict[Any, int]:
    """Return the first position of each element, by its name."""
    found: dict[Any, int] = {}
    for at, each in enumerate(items):
        if not (is_mapping(each) and "$patch" in each):
            found.setdefault(name_of(each, key), at)
    return found


def name_of(value: object, key: str) -> Any:
    """Return the key of an element: its merge key's value, or itself in a list of scalars. Raises PatchError."""
    if not key:
        name = value
    elif not is_mapping(value):
        raise PatchError(f"expected a map with the merge key {key!r} in the list, found {value!r}")
    elif key not in value:
        raise PatchError(f"map: {value} does not contain declared merge key: {key}")
    else:
        name = value[key]
    # names become keys of dictionaries: a mapping or list cannot be one
    if isinstance(name, dict | list):
        raise PatchError("list element types are not identical")
    return name


# --- Directives

_DIRECTIVES: Final = ("$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/")


def without_directives(value: object) -> Any:
    """Return a value of a patch as an object has it: without directives, nulls, and elements to be deleted."""
    if is_list(value):
        return [without_directives(each) for each in value if not _is_directed(each)]
    if not is_mapping(value):
        return value
    return {
        key: without_directives(each)
        for key, each in value.items()
        if each is not None and not key.startswith(_DIRECTIVES) and not _is_directed(each)
    }


def _is_directed(value: object) -> bool:
    return is_mapping(value) and "$patch" in value


_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_REMOVE: Final = "$deleteFromPrimitiveList/"


def strategic_merge(obj: Object, patch: object, message: SchemaMessage) -> Object | Refused:
    """Return the object after the patch, or 400 with the reason; `obj` and `patch` do not change."""
    if not is_mapping(patch):
        return refusals.bad_request("Invalid JSON document")
    try:
        return _merge_map(obj, patch, message.name)
    except PatchError as error:
        return refusals.bad_request(str(error))
    except RecursionError:
        return refusals.bad_request("the patch is nested too deeply")


def _merge_map(original: Object, patch: Object, type_: str) -> Object:
    """Return the mapping after the patch; `type_` is its message, or that of a map's values behind `{}`."""
    if _PATCH in patch:
        return _directed(patch)
    kept = _retained(original, patch)
    result = {key: value for key, value in original.items() if key in kept} if kept is not None else dict(original)
    done: set[str] = {_RETAIN}
    for key, value in patch.items():
        # lists with an order first: the directive and its list are merged as one
        if key.startswith(_ORDER):
            _ordered(result, patch, key, value, type_)
            done |= {key, key.removeprefix(_ORDER)}
    for key, value in patch.items():
        if key not in done:
            _merge_key(result, key, value, type_)
    return result


def _directed(patch: Object) -> Object:
    match patch[_PATCH]:
        case "replace":
            return {key: without_directives(value) for key, value in patch.items() if key != _PATCH}
        case "delete":
            return {}
        case other:
            raise PatchError(f"unknown patch type: {other} in map: {patch}")


def _retained(original: Object, patch: Object) -> set[str] | None:
    """Return the keys that `$retainKeys` leaves of the original; None without the directive."""
    if _RETAIN not in patch:
        return None
    keys: Any = patch[_RETAIN]
    if not is_list(keys) or not all(isinstance(key, str) for key in keys):
        raise PatchError("invalid patch format of retainKeys")
    kept = set[str](keys)
    told = {key for key, value in patch.items() if value is not None and not key.startswith((_RETAIN, _ORDER, _REMOVE))}
    if told - kept:
        raise PatchError("invalid patch format of retainKeys")
    return kept & original.keys()


def _merge_key(result: Object, key: str, value: object, type_: str) -> None:
    """Merge one entry of a patch into the mapping `result`."""
    if key.startswith(_REMOVE):
        _remove_primitives(result, key.removeprefix(_REMOVE), value)
    elif value is None:
        result.pop(key, None)
    elif is_mapping(value) and is_mapping(result.get(key)):
        inner, rules = _lookup(type_, key)
        whole = "replace" in rules.strategy
        result[key] = without_directives(value) if whole else _merge_map(result[key], value, inner)
    elif is_list(value) and is_list(result.get(key)):
        inner, rules = _lookup(type_, key)
        result[key] = _merge_list(result[key], value, inner, rules)
    elif is_mapping(value) and _PATCH in value:
        result.pop(key, None)
    else:
        result[key] = without_directives(value)


def _remove_primitives(result: Object, key: str, value: object) -> None:
    if not is_list(value):
        raise PatchError("invalid patch format of primitive list")
    gone = set(positions(value, ""))
    if is_list(result.get(key)):
        result[key] = [each for each in result[key] if name_of(each, "") not in gone]


def _merge_list(original: list[Any], patch: list[Any], type_: str, rules: Rules) -> list[Any]:
    # Kubernetes' default strategy for lists is `replace`
    if "merge" not in rules.strategy:
        fresh: list[Any] = without_directives(patch)
        return fresh
    if not original and not patch:
        return original
    if not rules.merge_key:
        # a dictionary keeps the first place of each and drops what comes twice
        merged = list({name_of(each, ""): each for each in [*original, *patch]}.values())
        return in_order(merged, patch, original, "")
    return _merged_by_key(original, patch, element(type_), rules.merge_key)


def _merged_by_key(original: list[Any], patch: list[Any], type_: str, key: str) -> list[Any]:
    """Merge elements of the patch into those with the same key; `$patch: delete` removes, `replace` drops the
    others.
    """
    merged: dict[Any, Any] = {}
    for each in original:
        # of elements that stand twice the first one is merged into, as in Go
        merged.setdefault(name_of(each, key), each)
    rest: list[Object] = []
    replaces = False
    for each in patch:
        match _directive(each):
            case "":
                rest.append(each)
            case "replace":
                replaces = True
            case "delete":
                merged.pop(name_of(each, key), None)
            case "merge":
                raise PatchError("merging lists cannot yet be specified in the patch")
            case unknown:
                raise PatchError(f"unknown patch type: {unknown} in map: {each}")
    if replaces:
        fresh: list[Any] = without_directives(rest)
        return fresh
    for each in rest:
        name = name_of(each, key)
        merged[name] = _merge_map(merged[name], each, type_) if name in merged else without_directives(each)
    return in_order(list(merged.values()), rest, original, key)


def _directive(value: object) -> Any:
    return value.get(_PATCH, "") if is_mapping(value) else ""


def _ordered(result: Object, patch: Object, directive: str, order: object, type_: str) -> None:
    """Merge the list of a `$setElementOrder/…`, and bring it into that order."""
    key = directive.removeprefix(_ORDER)
    original, change = result.get(key), patch.get(key, [])
    if not is_list(order) or (original is not None and not is_list(original)) or not is_list(change):
        raise PatchError(f"invalid patch format of setElementOrder list: {key}")
    listed, changed = order, change
    inner, rules = _lookup(type_, key)
    check_order(changed, listed, rules.merge_key)
    if original is None and key not in patch:
        return
    before = original or []
    if original is None:
        merged: list[Any] = without_directives(changed)
    else:
        merged = _merge_list(before, changed, inner, rules) if key in patch else before
        before = _server_order(before, changed, rules.merge_key)
    result[key] = in_order(merged, listed, before, rules.merge_key)


def _server_order(original: list[Any], change: list[Any], key: str) -> list[Any]:
    """Return the server's list by which a `$setElementOrder/…` places elements that it does not name.

    Go removes and appends in place, so that each new element stands where a removed one has made room, behind the rest.
    """
    gone = {name_of(each, key) for each in change if _directive(each) == "delete"}
    if not gone or not key:
        return original
    kept = [each for each in original if name_of(each, key) not in gone]
    known = positions(kept, key)
    fresh = [each for each in change if _directive(each) == "" and name_of(each, key) not in known]
    return kept + fresh[: len(original) - len(kept)]


def _lookup(type_: str, key: str) -> tuple[str, Rules]:
    """Return the type and rules of the value under `key` of a mapping."""
    if type_.startswith("{}"):
        return type_[2:], NO_RULES
    if not is_message(type_):
        return type_, NO_RULES  # free-form JSON: merged as plain maps
    field: Field | None = flat_fields(type_).get(key)
    if field is None:
        raise PatchError(f'unable to find api field in struct {type_.rsplit(".", 1)[-1]} for the json field "{key}"')
    return field.type, field.rules
