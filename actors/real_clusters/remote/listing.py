"""All objects of a resource, page by page (source: client-go's `pager`).

Where connections break before a page has come, it is asked for again in smaller ones, from where the last one ended: a
list that began anew each time, after ever longer delays, would need luck, and everybody waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from msgspec import Struct

from pumice.actors.errors import BrokenAnswerError, RemoteError
from pumice.actors.real_clusters.remote.api import RemoteApi
from pumice.core.objects.metadata import Object, section

PAGE: Final = 500
TRIES: Final = 12
"""So often a page may break off on the way, down to one object; then the wire is given up for a while."""


class RemoteResource(Struct, frozen=True):
    """What is listed and watched. `key`: the kind by which Pumice knows it; `path`: where it is served. `only`: one
    object by its name.
    """

    key: str
    api_version: str
    kind: str
    path: str
    only: str = ""

    @property
    def query(self) -> dict[str, str]:
        """What narrows it down."""
        return {"fieldSelector": f"metadata.name={self.only}"} if self.only else {}


class RemoteListing(Struct, frozen=True):
    """Objects with their `apiVersion` and `kind`, or what was kept of each, as of a resourceVersion."""

    objects: list[Any]
    revision: str


def whole(obj: Object) -> Object:
    """All of it is kept."""
    return obj


async def list_all(
    api: RemoteApi, resource: RemoteResource, page: int = PAGE, keep: Callable[[Object], Any] = whole
) -> RemoteListing:
    """All objects of a resource as of one moment; where its pages expire before they are read, all of it at once.
    `keep` sees each object as its page comes, and what it makes of it is all that stays. Raises RemoteError.
    """
    try:
        return await _paged(api, resource, page, keep)
    except RemoteError as error:
        if not error.expired:
            raise
        return await _paged(api, resource, 0, keep)


async def _paged(api: RemoteApi, resource: RemoteResource, page: int, keep: Callable[[Object], Any]) -> RemoteListing:
    objects, token, size = list[Any](), "", page
    while True:
        found, size = await _whole_page(api, resource, size, token)
        items = found.get("items")
        if items is not None and not isinstance(items, list):
            raise RemoteError(f"GET {resource.path}: expected a list of objects, was {type(items).__name__}")
        objects += [keep(named(resource, each)) for each in cast("list[Object]", items or ())]
        metadata, size = section(found, "metadata"), min(2 * size, page)
        token = str(metadata.get("continue") or "")
        if not token:
            return RemoteListing(objects, str(metadata.get("resourceVersion") or ""))


async def _whole_page(api: RemoteApi, resource: RemoteResource, size: int, token: str) -> tuple[Object, int]:
    """A page, and of how many objects it is at most; 0: of all."""
    for left in reversed(range(TRIES)):
        query = {**resource.query, **({"limit": str(size)} if size else {}), **({"continue": token} if token else {})}
        try:
            return await api.get(resource.path, query), size
        except BrokenAnswerError:
            if not size or not left:
                raise
            size = max(size // 2, 1)
    raise AssertionError("the last try has raised")


def named(resource: RemoteResource, obj: Object) -> Object:
    """The object with its type, which items of a list do not say."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
