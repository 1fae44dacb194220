"""What client-go's reflector does, in Python: list, watch, go on where the stream broke, list again when told to."""

import json
import threading
from collections.abc import Callable

import httpx

from pumice.core.objects.metadata import Object


class GoneError(Exception):
    """410: the revision is too old."""


class Informer:
    """Keeps `view` (by namespace/name) equal to what the server has, in a thread, until it is stopped.

    `client`: makes that of the next try. `streaming`: starts with a watch that sends the initial events, as client-go
    0.35 does; else with a list.
    """

    def __init__(self, client: Callable[[], httpx.Client], path: str, *, streaming: bool) -> None:
        self.view: dict[str, Object] = {}
        self.revision = 0
        self.lists = 0
        self.breaks = 0
        self.went_back: list[tuple[int, int]] = []
        self._client = client
        self._path = path
        self._streaming = streaming
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> "Informer":
        """Begin."""
        self._thread.start()
        return self

    def finish(self) -> None:
        """Ask it to end at the next line or break."""
        self._done.set()

    def stop(self) -> None:
        """Have it end, and wait for that."""
        self.finish()
        self._thread.join(30)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        fresh = True
        while not self._done.is_set():
            try:
                with self._client() as http:
                    if fresh and not self._streaming:
                        self._list(http)
                        fresh = False
                    self._watch(http, initial=fresh)
                    fresh = False
            except GoneError:
                fresh = True
            except (httpx.HTTPError, json.JSONDecodeError):
                self.breaks += 1
                fresh = fresh and not self.revision
                self._done.wait(0.02)

    def _list(self, http: httpx.Client) -> None:
        found = http.get(self._path, params={"resourceVersion": "0"})
        found.raise_for_status()
        listed = found.json()
        self.lists += 1
        self.view = {_key(one): one for one in listed["items"]}
        self._reached(int(listed["metadata"]["resourceVersion"]))

    def _watch(self, http: httpx.Client, *, initial: bool) -> None:
        query = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": "1"}
        if initial:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
            self.lists += 1
        else:
            query["resourceVersion"] = str(self.revision)
        coming: dict[str, Object] | None = {} if initial else None
        with http.stream("GET", self._path, params=query) as stream:
            if stream.status_code == 410:
                raise GoneError
            stream.raise_for_status()
            for line in stream.iter_lines():
                coming = self._take(json.loads(line), coming)
                if self._done.is_set():
                    return

    def _take(self, event: Object, coming: dict[str, Object] | None) -> dict[str, Object] | None:
        """One event; `coming` gathers the initial events until their bookmark replaces the view by them."""
        one = event["object"]
        if event["type"] == "ERROR":
            assert one["code"] == 410, one
            raise GoneError
        view = self.view if coming is None else coming
        if event["type"] == "DELETED":
            view.pop(_key(one), None)
        elif event["type"] != "BOOKMARK":
            view[_key(one)] = one
        if coming is None:
            self._reached(int(one["metadata"]["resourceVersion"]))
            return None
        if event["type"] == "BOOKMARK" and one["metadata"].get("annotations", {}).get("k8s.io/initial-events-end"):
            self.view = coming
            self._reached(int(one["metadata"]["resourceVersion"]))
            return None
        return coming

    def _reached(self, revision: int) -> None:
        if revision < self.revision:
            self.went_back.append((self.revision, revision))
        self.revision = revision


def _key(one: Object) -> str:
    return f"{one['metadata'].get('namespace', '')}/{one['metadata']['name']}"
