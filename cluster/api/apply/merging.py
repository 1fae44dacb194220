"""Merging what somebody applies into what is there: maps and keyed lists by their parts, leaves as wholes."""

from __future__ import annotations

from typing import Any

from pumice.cluster.api.apply.errors import ApplyError
from pumice.cluster.api.apply.paths import steps_of
from pumice.cluster.api.apply.same import same
from pumice.cluster.api.apply.walks import is_leaf
from pumice.cluster.api.schema.plain import COMPOUND, is_list, is_map
from pumice.cluster.api.schema.shapes import Shape, field_shape


def merge(live: Any, config: Any, shape: Shape, path: str = "") -> Any:
    """The live value with the applied one in it. Raises ApplyError for an applied list that is not a list of its sort.

    Elements keep the order of the applied list; those that only the live one has stay where they stood between them.
    """
    if config is None or is_leaf(config, shape):
        return live if shape.scalar and same(live, config, shape) else config
    if is_map(config):
        return _merged_map(live if is_map(live) and not is_leaf(live, shape) else {}, config, shape, path)
    return _merged_list(live if is_list(live) else [], config, shape, path)


def _merged_map(live: dict[str, Any], config: dict[str, Any], shape: Shape, path: str) -> dict[str, Any]:
    merged = dict(live)
    for name, each in config.items():
        before = live.get(name)
        if before is None and each.__class__ not in COMPOUND:  # a new leaf, as most are
            merged[name] = each
        else:
            merged[name] = merge(before, each, field_shape(shape, name), f"{path}.{name}")
    return merged


def _merged_list(live: list[Any], config: list[Any], shape: Shape, path: str) -> list[Any]:
    applied = _indexed(config, shape, path)
    steps = [step or "" for step in steps_of(live, shape)]
    item = shape.item()
    before: dict[str, Any] = {}
    for step, each in zip(steps, live, strict=True):
        before[step] = None if step in before else each  # what stands there twice is merged with nothing
    result: list[Any] = []
    for at, step in _order(steps, list(applied)):
        if step in applied:
            result.append(merge(before.get(step), applied[step], item, f"{path}[{step[2:]}]"))
        else:
            result.append(live[at])
    return result


def _order(live: list[str], applied: list[str]) -> list[tuple[int, str]]:
    """Where the merged list takes each element from: a place in the live list, or -1, and its step.

    Live elements that are not applied come as soon as the walk through the live list reaches them; applied ones in
    their own order; live ones that the applied list moved are skipped until the walk is at the next common one.
    """
    wanted, there = set(applied), set(live)
    shared = [step for step in applied if step in there]
    done: set[str] = set()
    result: list[tuple[int, str]] = []
    i = j = k = 0
    while i < len(live) or j < len(applied):
        if i < len(live) and live[i] not in wanted:
            result.append((i, live[i]))
            i += 1
        elif i < len(live) and (j == len(applied) or _is_passed(live[i], applied[j], shared[k : k + 1], done)):
            i += 1
        else:
            step = applied[j]
            i += i < len(live) and live[i] == step
            k += shared[k : k + 1] == [step]
            done.add(step)
            result.append((-1, step))
            j += 1
    return result


def _is_passed(step: str, applied: str, upcoming: list[str], done: set[str]) -> bool:
    """Whether a live element that is applied, though not here, has had its turn or will have it elsewhere."""
    return step != applied and (step in done or (bool(upcoming) and step != upcoming[0]))


def _indexed(items: list[Any], shape: Shape, path: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for at, (step, each) in enumerate(zip(steps_of(items, shape), items, strict=True)):
        if step is None:
            keys = ", ".join(shape.keys)
            wanted = f"a map with the keys {keys}" if shape.list_type == "map" else "a text, number or boolean"
            raise ApplyError(f"{path}: element {at}: expected {wanted}")
        if step in found:
            raise ApplyError(f"{path}: duplicate entries for key {step[2:]}")
        found[step] = each
    return found
