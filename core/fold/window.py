"""The changes that one cycle sees at once: of an object that changed several times, a view need only see the last."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.core.messages.events import Mutation

Key = tuple[str, str, str]
"""Kind, namespace and name."""


def show(window: Sequence[Mutation], apply: Callable[[Mutation], bool], watched: Callable[[Mutation], bool]) -> None:
    """Apply changes in order, without those that a later one of the same object makes up for.

    That is all but the last one before a deletion, and before the end. `apply` says whether the object could be read:
    where it could not, what the object was before counts. A change that is `watched` is never left out: it may end a
    flight, which the last one alone does not tell.
    """
    keys = [(mutation.kind, mutation.namespace, mutation.name) for mutation in window]
    if len(set(keys)) == len(keys):
        for mutation in window:
            apply(mutation)
        return
    skipped: dict[Key, list[Mutation]] = {}
    for mutation, key, unneeded in zip(window, keys, _made_up_for(window, keys), strict=True):
        if unneeded and not watched(mutation):
            skipped.setdefault(key, []).append(mutation)
            continue
        before = skipped.pop(key, None)
        if not apply(mutation) and before is not None:
            any(apply(earlier) for earlier in reversed(before))


def _made_up_for(window: Sequence[Mutation], keys: Sequence[Key]) -> list[bool]:
    later: set[Key] = set()
    found: list[bool] = []
    for mutation, key in zip(reversed(window), reversed(keys), strict=True):
        found.append(key in later and mutation.type != "DELETED")
        later.add(key)
    found.reverse()
    return found
