"""The library's pages are made from its docstrings, and say something of everything public."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pumice
from docs.making.write_api import FOLDER, MODULES, main
from tests.kit import source

PUBLIC = sorted(name for name in pumice.__all__ if not name.startswith("_"))


def test_every_public_name_has_its_place_and_its_words(tmp_path: Path) -> None:
    assert main(str(tmp_path)) == 0
    page = (tmp_path / "pumice.html").read_text("utf-8")
    for name in PUBLIC:
        found: Any = getattr(pumice, name)
        assert inspect.ismodule(found) or f'id="{name}"' in page, name
        assert inspect.getdoc(found), name
    for name in ("submit", "step", "run", "explain", "fork", "what_if", "save", "of_journal"):
        assert f'id="Cluster.{name}"' in page, name
    assert all((tmp_path / f"{name.replace('.', '/')}.html").exists() for name in MODULES)


def test_the_pages_are_no_part_of_the_tree() -> None:
    assert f"{FOLDER.partition('/')[0]}/" in (source.ROOT / ".gitignore").read_text("utf-8").split()


def test_the_import_alone_is_quick() -> None:
    program = "import sys, pumice; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
