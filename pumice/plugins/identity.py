"""What tells one version of a user's plugin from another: the journal keeps it, and a replay compares."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from pumice.config.input_file import read_bytes

DIGITS = 16


def of_module(path: Path) -> str:
    """Name and digest of a module's source, of all of a package's."""
    root = path.parent if path.name == "__init__.py" else path
    files = sorted(root.rglob("*.py")) if root.is_dir() else [root]
    digest = hashlib.sha256()
    for file in files:
        content = read_bytes(file)
        digest.update(f"{file.relative_to(root.parent).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return f"{root.name} sha256:{digest.hexdigest()[:DIGITS]}"


def of_entry_point(point: EntryPoint, builder: Any) -> str:
    """The distribution with its version, and the module's source."""
    file = getattr(sys.modules.get(str(getattr(builder, "__module__", ""))), "__file__", None)
    whose = f"{point.dist.name} {point.dist.version} " if point.dist is not None else ""
    return f"{whose}{of_module(Path(file)) if file else point.value}"


def differences(recorded: Mapping[str, set[str]], installed: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """What is wrong with the plugins here: missing ones (name -> identity), and sentences about changed ones."""
    missing = {name: sorted(known)[-1] for name, known in recorded.items() if name not in installed}
    changed = [
        f"the plugin {name!r} was {', then '.join(sorted(known))} and is {installed[name]} now"
        for name, known in recorded.items()
        if name in installed and known != {installed[name]}
    ]
    return missing, changed
