"""Builds the wheel and the sdist from the committed tree, and says what is wrong with them."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Final

from pumice import __version__

ROOT: Final = Path(__file__).parents[2]
BIN: Final = Path(sys.executable).parent
MOST_MB: Final = 2.5
"""Limit of the wheel in MB. It holds 5.6 MB of source in 900 modules; a fifth of what deflate leaves is docstrings."""
INFO: Final = f"pumice-{__version__}.dist-info"
PAPERS: Final = ("README.md", "CHANGELOG.md", "LICENSE")
LAYERS: Final = ("actors", "cluster", "config", "core", "storage")
NOT_OURS: Final = re.compile(r"\.(pyc|db|db-wal)$|__pycache__|/\.|\.egg-info")
CLONES: Final = (
    {"umask": 0o022, "TZ": "UTC", "PYTHONHASHSEED": "1"},
    {"umask": 0o077, "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "2"},
)
"""What differs between the two builds; the folders and the times of the files differ as well."""


class ReleaseError(Exception):
    """Something about the release is wrong; the message says what."""


def run(*command: str | Path, cwd: Path = ROOT, **options: object) -> str:
    """Return what a command prints. Raises ReleaseError with all of it when the command fails."""
    words = [str(word) for word in command]
    done = subprocess.run(  # type: ignore[call-overload]
        words, cwd=cwd, capture_output=True, text=True, check=False, timeout=300, **options
    )
    if done.returncode:
        raise ReleaseError(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def build(folder: Path) -> list[Path]:
    """Build the archives in two clones and return the first ones. Raises ReleaseError unless all bytes are equal."""
    made = [build_once(folder / str(number), clone) for number, clone in enumerate(CLONES)]
    digests = [[hashlib.sha256(path.read_bytes()).hexdigest() for path in each] for each in made]
    if digests[0] != digests[1]:
        raise ReleaseError(f"two builds differ: {[path.name for path in made[0]]}: {digests}")
    return made[0]


def build_once(folder: Path, differences: dict[str, object]) -> list[Path]:
    """Return the wheel and the sdist as built from a fresh clone."""
    tree, dist = folder / "pumice", folder / "dist"
    folder.mkdir(parents=True)
    mask = differences["umask"]
    assert isinstance(mask, int)
    run("git", "clone", "-q", ROOT, tree, umask=mask)
    return hatchling(tree, dist, differences, mask)


def hatchling(tree: Path, dist: Path, differences: dict[str, object], mask: int, *targets: str) -> list[Path]:
    """Run the build backend in a tree, with the time of the last commit as that of every file."""
    when = run("git", "log", "-1", "--format=%ct").strip()
    environment = {**os.environ, **{name: str(value) for name, value in differences.items()}, "SOURCE_DATE_EPOCH": when}
    named = [word for target in targets for word in ("-t", target)]
    run(sys.executable, "-m", "hatchling", "build", "-d", dist, *named, cwd=tree, env=environment, umask=mask)
    return sorted(dist.iterdir())


def rebuilt(sdist: Path, wheel: Path, folder: Path) -> None:
    """Build the wheel from the sdist. Raises ReleaseError unless that gives the same bytes."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (again,) = hatchling(next(folder.iterdir()), folder / "dist", {}, 0o022, "wheel")
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
