# SPDX-License-Identifier: Apache-2.0
"""The token that clients and servers are given: by a word, by a file, or by the environment.

A command that only asks has no need of the gateway, which takes a twentieth of a second to import.
"""

from __future__ import annotations

import os
from pathlib import Path

from pumice.config.errors import ConfigError, ConflictError
from pumice.config.input_file import read_text, unreadable


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
