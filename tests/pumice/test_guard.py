"""A foreign module with the name of a layer is refused and named, whatever it is."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pumice import guard

ROOT = Path(guard.__file__).parents[1]


def start(folder: Path, code: str = "import pumice") -> subprocess.CompletedProcess[str]:
    """Run the code where `folder` comes first on the path, as it does for a script that lies there."""
    program = f"import sys; sys.path[:0] = [{str(folder)!r}, {str(ROOT)!r}]; {code}"
    command = [sys.executable, "-I", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_our_own_layers_pass(tmp_path: Path) -> None:
    done = start(tmp_path, "import pumice; print(pumice.__version__)")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", done.stdout)


@pytest.mark.parametrize("layer", guard.LAYERS)
def test_a_shadowing_file_is_named_and_never_run(tmp_path: Path, layer: str) -> None:
    foreign = tmp_path / f"{layer}.py"
    foreign.write_text("print('executed')\n")
    done = start(tmp_path)
    assert done.returncode == 1
    assert "ForeignLayerError" in done.stderr
    assert str(foreign) in done.stderr
    assert "executed" not in done.stdout


def test_a_shadowing_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "core").mkdir()
    foreign = tmp_path / "core" / "__init__.py"
    foreign.write_text("")
    assert f"{foreign}, imported as 'core', does not belong to Pumice" in start(tmp_path).stderr


def test_a_package_that_fails_to_import_is_named(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "__init__.py").write_text("raise RuntimeError('not today')\n")
    done = start(tmp_path)
    assert "cannot be imported (RuntimeError: not today)" in done.stderr


def test_a_layer_of_another_version_is_named(tmp_path: Path) -> None:
    (tmp_path / "storage").mkdir()
    (tmp_path / "storage" / "__init__.py").write_text("__pumice__ = '0.0.1'\n")
    assert "belongs to Pumice 0.0.1, not " in start(tmp_path).stderr


def test_an_empty_folder_does_not_shadow_ours(tmp_path: Path) -> None:
    (tmp_path / "actors").mkdir()
    assert start(tmp_path).returncode == 0


def test_a_missing_layer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "LAYERS", ("a_layer_that_nobody_has",))
    with pytest.raises(guard.ForeignLayerError, match="'a_layer_that_nobody_has' is missing"):
        guard.check_layers("0.1.0")


def test_the_versions_agree() -> None:
    written = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert written is not None
    guard.check_layers(written[1])
