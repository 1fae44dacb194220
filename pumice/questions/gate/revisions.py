# SPDX-License-Identifier: Apache-2.0
"""A side has a folder: a path, or the folder as a git revision has it."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from pumice.errors import InputError

GIT_S: Final = 30.0
"""Timeout of git for a folder."""


def folder_of(said: str, policy: str, beside: Path, into: Path) -> tuple[Path, str]:
    """Return the folder of a side and its name in messages: a path, or the policy's folder (relative to `beside`) as a
    git revision has it, which is written below `into`. Raises InputError.
    """
    for path in (beside / said, Path(said)):
        if path.is_dir():
            return path, said
    shown = f"{said}:{policy or '.'}"
    archive = _archive(beside, said, policy, shown)
    target = Path(tempfile.mkdtemp(dir=into))
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(target, filter="data")
    except (tarfile.TarError, OSError) as error:  # a link that leads out of the folder
        raise InputError(f"cannot be taken from git: {error}", source=shown) from error
    return target, shown


def _archive(beside: Path, said: str, policy: str, shown: str) -> bytes:
    try:
        top = _git(beside, "rev-parse", "--show-toplevel").decode().strip()
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        problem = f"no such folder, and no git revision: {beside.resolve()} is not in a git repository"
        raise InputError(problem, source=said) from error
    commit = _line(beside, f"{said}^{{commit}}")
    if not commit:
        raise InputError("no such folder, and no such git revision", source=said)
    # a name of a tree, asked for at the top: `git archive` in a subfolder takes paths relative to that subfolder
    tree = _line(beside, f"{commit}:./{policy}")
    try:
        return _git(Path(top), "archive", "--format=tar", tree)
    except subprocess.CalledProcessError as error:
        raise InputError("this revision has no such folder; `policy` in the file names it", source=shown) from error


def _line(beside: Path, name: str) -> str:
    """Return the name of a git object, "" where there is none."""
    try:
        return _git(beside, "rev-parse", "--verify", "--quiet", "--end-of-options", name).decode().strip()
    except subprocess.CalledProcessError:
        return ""


def _git(beside: Path, *words: str) -> bytes:
    command = ["git", "-C", str(beside), *words]
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=GIT_S)
    except subprocess.TimeoutExpired as error:
        raise InputError(f"git took longer than {GIT_S:.0f} s", source=" ".join(command)) from error
    return done.stdout
