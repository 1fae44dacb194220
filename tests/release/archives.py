"""Builds the wheel and the sdist from the committed tree, and says what is wrong with them."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from pumice import __version__

ROOT: Final = Path(__file__).parents[2]
BIN: Final = Path(sys.executable).parent
MOST_MB: Final = 2.7
"""Limit of the wheel in MB, which is almost all source: docs/reference/dependencies.md has what was tried."""
INFO: Final = f"pumice-{__version__}.dist-info"
PAPERS: Final = ("README.md", "CHANGELOG.md", "LICENSE")
LAYERS: Final = ("actors", "cluster", "config", "core", "storage")
NOT_OURS: Final = re.compile(r"\.(pyc|db|db-wal)$|__pycache__|/\.|\.egg-info")


class ReleaseError(Exception):
    """Something about the release is wrong; the message says what."""


def run(*command: str | Path, cwd: Path = ROOT, env: Mapping[str, str] | None = None, umask: int = -1) -> str:
    """Return what a command prints. Raises ReleaseError with all of it when the command fails."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env=env, umask=umask, capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode:
        raise ReleaseError(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Builder(NamedTuple):
    """What differs between two builds. So do the folders, and the times of the files."""

    umask: int
    time_zone: str
    hash_seed: str

    def clone(self, tree: Path) -> None:
        """Make a clone of the repository."""
        tree.parent.mkdir(parents=True)
        run("git", "clone", "-q", ROOT, tree, umask=self.umask)

    def build(self, tree: Path, dist: Path, *targets: str) -> list[Path]:
        """Run the build backend in a tree, with the time of the last commit as that of every file."""
        when = run("git", "log", "-1", "--format=%ct").strip()
        own = {"TZ": self.time_zone, "PYTHONHASHSEED": self.hash_seed, "SOURCE_DATE_EPOCH": when}
        named = [word for target in targets for word in ("-t", target)]
        options = ["-d", str(dist), *named]
        run(sys.executable, "-m", "hatchling", "build", *options, cwd=tree, env={**os.environ, **own}, umask=self.umask)
        return sorted(dist.iterdir())


BUILDERS: Final = (Builder(0o022, "UTC", "1"), Builder(0o077, "Asia/Kathmandu", "2"))


def build(folder: Path) -> list[Path]:
    """Build the archives in two clones and return the first ones. Raises ReleaseError unless all bytes are equal."""
    made: list[list[Path]] = []
    for number, builder in enumerate(BUILDERS):
        tree = folder / str(number) / "pumice"
        builder.clone(tree)
        made.append(builder.build(tree, folder / str(number) / "dist"))
    digests = [[hashlib.sha256(path.read_bytes()).hexdigest() for path in each] for each in made]
    if digests[0] != digests[1]:
        raise ReleaseError(f"two builds differ: {[path.name for path in made[0]]}: {digests}")
    return made[0]


def rebuilt(sdist: Path, wheel: Path, folder: Path) -> None:
    """Build the wheel from the sdist. Raises ReleaseError unless that gives the same bytes."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (again,) = BUILDERS[0].build(next(folder.iterdir()), folder / "dist", "wheel")
    if again.read_bytes() != wheel.read_bytes():
        raise ReleaseError("the wheel that the sdist gives is another")


def look_into(wheel: Path, sdist: Path) -> None:
    """Raise ReleaseError for anything that should not be in the archives, or is missing."""
    run(BIN / "twine", "check", "--strict", wheel, sdist)
    run(BIN / "check-wheel-contents", "--toplevel", "pumice", wheel)
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
        metadata = archive.read(f"{INFO}/METADATA").decode()
    with tarfile.open(sdist) as archive:
        unpacked = {name.partition("/")[2] for name in archive.getnames()}
    missing = ({*code(), f"{INFO}/licenses/LICENSE"} - packed) | ({*code(), *PAPERS} - unpacked)
    problems = [f"{name} is missing" for name in sorted(missing)]
    problems += [f"{name} has no place in it" for name in sorted(packed | unpacked) if NOT_OURS.search(name)]
    if f"\nVersion: {__version__}\n" not in metadata:
        problems.append(f"the metadata are not those of {__version__}")
    if wheel.stat().st_size > MOST_MB * 1e6:
        problems.append(f"the wheel has {wheel.stat().st_size / 1e6:.2f} MB, at most {MOST_MB}")
    if problems:
        raise ReleaseError("\n".join(problems))


def code() -> set[str]:
    """Return the committed files of the package, as they are named once installed."""
    tracked = run("git", "ls-files", "pumice", *LAYERS).splitlines()
    files = (name for name in tracked if not (ROOT / name).is_symlink() and not name.endswith(".md"))
    return {name if name.startswith("pumice/") else f"pumice/{name}" for name in files}
