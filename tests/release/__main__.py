"""`python -m tests.release`: build, look into, install and try; the archives stay in `dist/`.

`--publish` also asks for what only the owner of the project can have put in: addresses of the project that exist.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Final

from tests.release.archives import ROOT, ReleaseError, build, look_into, rebuilt
from tests.release.dependencies import compare_licences
from tests.release.trials import FIRST, PYTHONS, interpreter, trial

DIST: Final = ROOT / "dist"


def main(*options: str) -> int:
    """Print what each step took and showed; 1 when one failed."""
    try:
        if "--publish" in options:
            is_publishable()
        with tempfile.TemporaryDirectory(prefix="pumice-release-") as folder:
            release(Path(folder))
    except ReleaseError as error:
        print(f"FAILED: {error}")
        return 1
    return 0


def release(folder: Path) -> None:
    """Do all steps. Raises ReleaseError at the first that fails."""
    began = time.monotonic()
    wheel, sdist = build(folder / "built")
    look_into(wheel, sdist)
    (folder / "sdist").mkdir()
    rebuilt(sdist, wheel, folder / "sdist")
    sizes = ", ".join(f"{path.name} {path.stat().st_size / 1e6:.2f} MB" for path in (wheel, sdist))
    print(f"built twice, and the wheel from the sdist, with equal bytes in {time.monotonic() - began:.0f} s: {sizes}")
    for version in PYTHONS:
        python = interpreter(version)
        if python is None:
            print(f"Python {version} is not here: SKIPPED")
            continue
        one = trial(wheel, version, python, folder / version)
        how = "pip, no cache" if version == FIRST else "uv"
        print(
            f"Python {version}: installed in {one.install_s:.1f} s ({how}; {one.worked_s:.1f} s of work), "
            f"{one.size_mb:.0f} MB; a gang runs after {one.placed_s:.1f} s; the README's command and program do"
        )
        if version == FIRST:
            compare_licences(folder / version / "environment" / "bin" / "python")
    DIST.mkdir(exist_ok=True)
    for path in (wheel, sdist):
        shutil.copy(path, DIST)


def is_publishable() -> None:
    """Raise ReleaseError while the project's addresses are placeholders."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
    if held := [name for name, url in urls.items() if ".invalid" in url]:
        raise ReleaseError(f"pyproject.toml: [project.urls] has placeholders: {', '.join(held)} (docs/release.md)")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
