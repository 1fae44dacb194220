# SPDX-License-Identifier: Apache-2.0
"""Archives of a cluster: tar (gzipped or not), ZIP, and folders of texts with a layout of their own.

- velero's backup (`velero backup download`): `resources/RESOURCE.GROUP/namespaces/NS/NAME.json` and `…/cluster/…`;
  other versions of the same objects lie in folders called after the version (velero's "Output file format").
- `oc adm must-gather` and `oc adm inspect`, as the folder that they write or packed: YAML below
  `cluster-scoped-resources/` and `namespaces/`, beside logs and data of other tools (oc's pkg/cli/admin/inspect).
- KAI's snapshot (`/get-snapshot`): a ZIP with `snapshot.json` (exports.py says what its content becomes).
- Any other archive: its manifests, as those of a folder.

What is not read is counted with the reason. Nothing is unpacked to the disk.
"""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from pumice.config.input_file import open_input, unreadable
from pumice.errors import InputError
from pumice.load.source import MOST_BYTES, decoded
from pumice.load.traces.jobs import Left

SUFFIXES: Final = (".yaml", ".yml", ".json", ".jsonl")
ZIP_MAGIC: Final = b"PK\x03\x04"
GZIP_MAGIC: Final = b"\x1f\x8b"
TAR_MAGIC: Final = b"ustar"
TAR_MAGIC_AT: Final = 257
CLUSTER_SCOPED: Final = "cluster-scoped-resources"
NAMESPACES: Final = "namespaces"
INSPECTED_DEPTH: Final = 3
"""Levels down to the inspected cluster: must-gather.local.N/IMAGE/cluster-scoped-resources."""

Texts = Iterator[tuple[str, str | InputError]]
"""(name, text) of each file, in order."""
Reason = Callable[[str], str]
"""name of a file -> why it is left out; "" for one that is read."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A file of an archive; `read` gives at most so many of its bytes."""

    name: str
    read: Callable[[int], bytes]


def read_archive(path: str, left: Left) -> Texts | None:
    """Return the texts of an archive by their names, in its order, an InputError for one that cannot be read; None
    where the path is not an archive. `left` counts what is left out, when all has been read. Raises InputError.
    """
    root = Path(path)
    if root.is_dir():
        return _texts(path, _not_inspected, _files(root), left) if any(_cluster_scoped(root)) else None
    form = _form(root)
    return None if form is None else _packed(root, form, left)


def _cluster_scoped(root: Path) -> Iterator[Path]:
    for depth in range(INSPECTED_DEPTH):
        yield from (place for place in root.glob("*/" * depth + CLUSTER_SCOPED) if place.is_dir())


def _files(root: Path) -> Iterator[_Member]:
    def member(file: Path) -> _Member:
        def read(most: int) -> bytes:
            with open_input(file) as opened:
                return opened.read(most)

        return _Member(file.relative_to(root).as_posix(), read)

    yield from (member(file) for file in sorted(root.rglob("*")) if file.is_file())


def _form(file: Path) -> str | None:
    """Return "tar" or "zip" by the first bytes. A pipe is not looked into: it can be read once."""
    try:
        if not file.is_file():
            return None
        with open_input(file) as opened:
            head = opened.read(TAR_MAGIC_AT + len(TAR_MAGIC))
            if head.startswith(ZIP_MAGIC):
                return "zip"
            if head.startswith(GZIP_MAGIC):
                opened.seek(0)
                with gzip.open(opened) as unzipped:
                    head = unzipped.read(TAR_MAGIC_AT + len(TAR_MAGIC))
    except (OSError, EOFError, zlib.error):  # the reader of texts says what is wrong
        return None
    return "tar" if head[TAR_MAGIC_AT:] == TAR_MAGIC else None


def _packed(file: Path, form: str, left: Left) -> Texts:
    """Yield the texts of a packed archive. Raises InputError for one that is damaged."""
    members = _tar_members if form == "tar" else _zip_members
    try:
        with open_input(file) as opened, members(opened) as (names, found):
            yield from _texts(str(file), _reason_of(names), found, left)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"not a whole {form} archive: {error}", source=str(file)) from error
    except (RuntimeError, NotImplementedError) as error:  # zipfile: a password, or an unknown compression
        raise InputError(f"cannot be unpacked: {error}", source=str(file)) from error
    except OSError as error:
        raise InputError(unreadable(error), source=str(file)) from error


@contextmanager
def _tar_members(opened: BinaryIO) -> Generator[tuple[Sequence[str], Iterator[_Member]]]:
    with tarfile.open(fileobj=opened) as archive:
        infos = [info for info in archive if info.isreg()]
        _demand_end(archive)

        def member(info: tarfile.TarInfo) -> _Member:
            def read(most: int) -> bytes:
                content = archive.extractfile(info)
                return b"" if content is None else content.read(most)

            return _Member(_plain(info.name), read)

        yield [_plain(info.name) for info in infos], map(member, infos)


def _demand_end(archive: tarfile.TarFile) -> None:
    """Check that nothing but zeros follows the last file: tarfile takes the rest of a cut header for the end."""
    assert archive.fileobj is not None
    archive.fileobj.seek(archive.offset)
    if archive.fileobj.read(tarfile.BLOCKSIZE).strip(b"\0"):
        raise tarfile.ReadError("it ends within a header")


@contextmanager
def _zip_members(opened: BinaryIO) -> Generator[tuple[Sequence[str], Iterator[_Member]]]:
    with zipfile.ZipFile(opened) as archive:
        infos = [info for info in archive.infolist() if not info.is_dir()]

        def member(info: zipfile.ZipInfo) -> _Member:
            def read(most: int) -> bytes:
                with archive.open(info) as content:
                    return content.read(most)

            return _Member(_plain(info.filename), read)

        yield [_plain(info.filename) for info in infos], map(member, infos)


def _plain(name: str) -> str:
    return name.removeprefix("./")


# --- Layouts


def _reason_of(names: Sequence[str]) -> Reason:
    """Return the reason by which files of an archive with these names are left out."""
    if any(f"/{CLUSTER_SCOPED}/" in f"/{name}" for name in names):
        return _not_inspected
    if any(_is_velero(name) for name in names):
        return _not_backed_up
    return _not_a_manifest


def _not_a_manifest(name: str) -> str:
    return "" if name.endswith(SUFFIXES) else "not called as a manifest"


def _not_inspected(name: str) -> str:
    folders = name.split("/")[:-1]
    if not name.endswith(".yaml") or not {CLUSTER_SCOPED, NAMESPACES} & {*folders}:
        return "logs and data of other tools"
    return ""


def _is_velero(name: str) -> bool:
    """Return whether an object of a backup has this name: the preferred version, without one in its path."""
    parts = name.split("/")
    return parts[0] == "resources" and name.endswith(".json") and parts[2:3] in (["cluster"], [NAMESPACES])


def _not_backed_up(name: str) -> str:
    if _is_velero(name):
        return ""
    return "other versions of objects" if name.startswith("resources/") else "about the backup itself"


# --- Texts


def _texts(source: str, reason: Reason, members: Iterator[_Member], left: Left) -> Texts:
    """Yield the texts that count. Raises InputError where they are too many bytes."""
    left.what = "files"
    room = MOST_BYTES
    for member in members:
        if why := reason(member.name):
            left.note(why)
            continue
        name = f"{source}:{member.name}"
        data = member.read(room + 1)
        room -= len(data)
        if room < 0:
            raise InputError(f"longer than {MOST_BYTES} bytes", source=source)
        try:
            yield name, decoded(data, name)
        except InputError as error:
            yield name, error
