# SPDX-License-Identifier: Apache-2.0
"""The tokens that clients and servers are given: by a word, by a file, or by the environment.

A command that only asks has no need of the gateway, which takes a twentieth of a second to import.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import NamedTuple

from pumice.config.errors import ConfigError, ConflictError
from pumice.config.input_file import read_text, unreadable

_LEAST = 3
"""Cells of a line: token, user and uid."""


def token_given(token: str | None, token_file: str | None) -> str:
    """Return the token of a command, "" for none. A file that is named on the command line wins over a token in the
    environment. Raises ConflictError, OSError.
    """
    of_environment = token == os.environ.get("PUMICE_TOKEN")
    if token_file is None:
        return _sendable(token or "", "PUMICE_TOKEN" if of_environment else "--token")
    # Both from the environment are a conflict as well: neither was named for this command.
    if token is not None and not (of_environment and token_file != os.environ.get("PUMICE_TOKEN_FILE")):
        raise ConflictError("give --token or --token-file", path="--token")
    return _read_token(Path(token_file))


class TokenUser(NamedTuple):
    """A user of a token file."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()


def read_users(file: Path) -> dict[str, TokenUser]:
    """Return the users of a token file by their tokens, in Kubernetes' form (apiserver's `tokenfile`): lines of
    token,user,uid and, in quotes where they are several, groups. Raises ConfigError, OSError.
    """
    found: dict[str, TokenUser] = {}
    for number, line in enumerate(csv.reader(read_text(file).splitlines(), skipinitialspace=True), 1):
        where = f"line {number}"
        if not any(cell.strip() for cell in line):
            continue
        if len(line) < _LEAST:
            raise ConfigError('expected token,user,uid and perhaps "groups"', source=str(file), path=where)
        token, name, uid, *groups = (cell.strip() for cell in line)
        if not token or not name:
            raise ConfigError("expected a token and a user", source=str(file), path=where)
        if token in found:
            raise ConfigError("the token of an earlier line", source=str(file), path=where)
        listed = (group.strip() for group in ",".join(groups).split(","))
        found[_sendable(token, "--token-auth-file")] = TokenUser(name, uid, tuple(filter(None, listed)))
    return found


def _read_token(file: Path) -> str:
    try:
        # Bytes that are not UTF-8 become a character that `_sendable` refuses, with the message for all such tokens.
        token = read_text(file, errors="replace").strip()
    except OSError as error:
        raise ConfigError(unreadable(error), source=str(file), path="--token-file") from error
    if not token:
        raise ConflictError("expected a token in the file, found nothing", path="--token-file")
    return _sendable(token, "--token-file")


def _sendable(token: str, path: str) -> str:
    """Return a token that clients can put into a header."""
    if not all("!" <= letter <= "~" for letter in token):
        raise ConflictError("expected a token of printable ASCII without spaces: no other can be sent", path=path)
    return token
