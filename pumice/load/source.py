# SPDX-License-Identifier: Apache-2.0
"""From words of the command line to texts: files, folders walked in order, stdin."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO

from pumice.config.input_file import open_input, unreadable
from pumice.errors import InputError, demand

SUFFIXES: Final = (".yaml", ".yml", ".json", ".jsonl", ".yaml.gz", ".yml.gz", ".json.gz", ".jsonl.gz")
STDIN: Final = "-"
MOST_BYTES: Final = 2**31
"""A manifest unzipped at most; a small file can say that it is a large one."""


def find_files(path: str) -> list[Path]:
    """Return the file itself, or every manifest under a folder, sorted. InputError without any."""
    root = Path(path)
    if not root.exists():
        raise InputError("does not exist", source=path)
    if not root.is_dir():
        return [root]
    try:
        files = sorted(file for file in root.rglob("*") if file.name.endswith(SUFFIXES) and file.is_file())
    except OSError as error:
        raise InputError(unreadable(error), source=str(error.filename or path)) from error
    if not files:
        raise InputError(f"no manifest in this folder (looked for {', '.join(SUFFIXES[:3])})", source=path)
    return files


def read_texts(path: str, stdin: TextIO) -> Iterator[tuple[str, str | InputError]]:
    """Yield (name, text) of every file behind `path`, in order; an InputError in place of a text that cannot be
    read.
    """
    if path == STDIN:
        yield "stdin", _read_stdin(stdin)
        return
    for file in find_files(path):
        try:
            yield str(file), read_text(file)
        except InputError as error:
            yield str(file), error


def _read_stdin(stdin: TextIO) -> str | InputError:
    """Read stdin by its bytes, where it has them: in some locales Python reads any bytes as a text that cannot be
    written again.
    """
    buffer: BinaryIO | None = getattr(stdin, "buffer", None)
    if buffer is None:
        return stdin.read()
    try:
        return decoded(buffer.read(), "stdin")
    except InputError as error:
        return error


def decoded(data: bytes, source: str) -> str:
    """Return the text of bytes, InputError for those that are none. A byte order mark chooses UTF-16, as in kubectl:
    PowerShell writes such files.
    """
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        said = encoding.upper().removesuffix("-SIG")
        raise InputError(f"not {said} text (byte {error.start})", source=source, line=line) from error


def read_text(file: Path) -> str:
    """Return the UTF-8 text of a file, unzipped when its name ends in .gz or .zst. InputError says why it cannot be
    read, RequestError that .zst needs a package.
    """
    try:
        with open_input(file) as plain, _opened(plain, file.suffix) as stream:
            data = stream.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise InputError(f"longer than {MOST_BYTES} bytes", source=str(file))
        return decoded(data, str(file))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"not a whole gzip file: {error}", source=str(file)) from error
    except OSError as error:
        raise InputError(unreadable(error), source=str(file)) from error
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise InputError(f"not a whole zstd file: {error}", source=str(file)) from error


def _opened(plain: BinaryIO, suffix: str) -> Any:
    if suffix == ".gz":
        return gzip.open(plain)
    if suffix == ".zst":
        return demand("zstandard", "tables", "Files that end in .zst").ZstdDecompressor().stream_reader(plain)
    return plain
