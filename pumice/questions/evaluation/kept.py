# SPDX-License-Identifier: Apache-2.0
"""Kept results: a file for each task, named after the content of all that decides it. Sweeps, gates and evaluations
keep theirs so, and none runs a task twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, Generic, TypeVar

import msgspec

from pumice import __version__
from pumice.config.rules import VERSION
from pumice.errors import InputError
from pumice.executors import Executors, as_ended, died

T = TypeVar("T")
AGAIN: Final = 3
"""Number of tries of a task whose worker dies."""


def content_key(*parts: object, files: Iterable[bytes] = ()) -> str:
    """Return the key of a result: a hash of its inputs, the version of Pumice and that of its rules."""
    content = msgspec.json.encode([__version__, VERSION, *parts], order="sorted")
    digest = blake2b(content, digest_size=16)
    for file in files:
        digest.update(file)
    return digest.hexdigest()


class KeptResults(Generic[T]):
    """Results of one type by key, in a folder (None: nowhere), each a file `KEY.SUFFIX`: JSON, or MessagePack for any
    other suffix. `strict`: a file that cannot be read is an error, and not a result that is not there.
    """

    def __init__(self, folder: Path | None, kind: type[T], suffix: str = "json", *, strict: bool = False) -> None:
        self.folder, self._suffix, self._strict = folder, suffix, strict
        self._encode: Callable[[object], bytes] = msgspec.msgpack.encode
        self._decode: Callable[[bytes], T] = msgspec.msgpack.Decoder(kind).decode
        if suffix == "json":
            self._encode, self._decode = msgspec.json.encode, msgspec.json.Decoder(kind).decode

    def get(self, key: str) -> T | None:
        """Return the result of a key, None without one. Raises InputError for a damaged file where that counts."""
        path = self._path(key)
        if path is None or not path.is_file():
            return None
        try:
            return self._decode(path.read_bytes())
        except msgspec.DecodeError as error:
            if self._strict:
                problem = "not the result of a run: remove it, and the run is run again"
                raise InputError(problem, source=str(path)) from error
            return None

    def put(self, key: str, result: T) -> T:
        """Write a result, as a whole or not at all: others may write the same. Returns it."""
        path = self._path(key)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as part:
                part.write(self._encode(result))
            Path(part.name).rename(path)
        return result

    def _path(self, key: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{key}.{self._suffix}"


def run_missing(
    work: Callable[..., T],
    tasks: Mapping[str, tuple[Any, ...]],
    kept: KeptResults[T],
    executors: Executors | None,
    ended: Callable[[], None] = lambda: None,
) -> dict[str, T]:
    """Return the result of every task by its key; those without a kept one are run now (`executors` None: here), and
    `ended` is called after each. A task whose worker dies is tried again. Raises what a task raises.
    """
    found = {key: result for key in tasks if (result := kept.get(key)) is not None}
    left = {key: task for key, task in tasks.items() if key not in found}
    if executors is None:
        for key, task in left.items():
            found[key] = kept.put(key, work(*task))
            ended()
        return found
    for attempt in range(AGAIN if left else 0):
        with executors() as executor:
            for key, future in as_ended(work, dict(left), executor):
                if died(future.exception()) and attempt < AGAIN - 1:
                    continue
                found[key] = kept.put(key, future.result())
                del left[key]
                ended()
        if not left:
            break
    return found
