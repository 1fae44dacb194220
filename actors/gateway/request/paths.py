# SPDX-License-Identifier: Apache-2.0
"""Paths under /api and /apis, read as a target.

/api/v1/namespaces/NS/pods/NAME/status       /apis/GROUP/VERSION/queues/NAME       /api/v1/watch/namespaces/NS/pods
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, structs

_OF_NAMESPACES: Final = ("status", "finalize")


class Target(Struct, frozen=True, gc=False):
    """The parts of a path as they stand there; "" for missing ones. Whether any of it exists is not known here.

    `watched`: it asks for a watch by itself, as old clients do, without `watch=true` in the query.
    """

    group: str = ""
    version: str = ""
    namespace: str = ""
    plural: str = ""
    name: str = ""
    subresource: str = ""
    watched: bool = False

    @property
    def api_version(self) -> str:
        """Return `group/version`, or the bare version in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


def parse_path(path: str) -> Target | None:
    """Return the target of a resource path; None for another path."""
    parts = path.strip("/").split("/")
    # `//` does not stand for an empty name: such a path names nothing.
    if "" in parts:
        return None
    match parts:
        case ["api", version, *rest]:
            return _resource("", version, rest)
        case ["apis", group, version, *rest]:
            return _resource(group, version, rest)
        case _:
            return None


def _resource(group: str, version: str, rest: list[str]) -> Target | None:
    match rest:
        case ["watch", _, *_]:
            target = _resource(group, version, rest[1:])
            return structs.replace(target, watched=True) if target and not target.subresource else None
        # Before the next case: a namespace's own subresource looks like a collection inside it.
        case ["namespaces", name, subresource] if subresource in _OF_NAMESPACES:
            return Target(group, version, "", "namespaces", name, subresource)
        case ["namespaces", namespace, plural]:
            return Target(group, version, namespace, plural)
        case ["namespaces", namespace, plural, name]:
            return Target(group, version, namespace, plural, name)
        case ["namespaces", namespace, plural, name, subresource]:
            return Target(group, version, namespace, plural, name, subresource)
        case [plural]:
            return Target(group, version, "", plural)
        case [plural, name]:
            return Target(group, version, "", plural, name)
        case [plural, name, subresource]:
            return Target(group, version, "", plural, name, subresource)
        case _:
            return None
