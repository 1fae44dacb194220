"""Finding plugins: folders, entry points, and what is wrong with them."""

from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from pumice.config.errors import ConfigError, ConflictError
from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import close_session
from pumice.core.plugins import PLUGINS
from pumice.core.plugins.user import UserPlugin
from pumice.plugins import loader
from pumice.plugins.loader import changed_plugins, install_plugins
from tests.core.plugins.world import open_world

MODULE = """
class Quiet:
    name = "quiet"

    def __init__(self, arguments):
        self.arguments = arguments

    def on_session_open(self, session): ...
    def on_session_close(self, session): ...

PLUGINS = {"NAME": Quiet}
"""


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """The table as it was."""
    before = dict(PLUGINS)
    yield
    PLUGINS.clear()
    PLUGINS.update(before)


def write(folder: Path, **modules: str) -> Path:
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def test_a_folders_modules_and_packages_are_loaded_by_name(tmp_path: Path) -> None:
    write(tmp_path, b=MODULE.replace("NAME", "second"), _hidden="raise SystemError", a=MODULE.replace("NAME", "first"))
    (tmp_path / "c").mkdir()
    write(tmp_path / "c", part="NAME = 'third'")
    write(tmp_path / "c", __init__="from .part import NAME\n" + MODULE.replace('"NAME"', "NAME"))
    (tmp_path / "notes.txt").write_text("no plugin")
    (tmp_path / "empty").mkdir()
    assert install_plugins(tmp_path) == ("first", "second", "third")
    plugin = PLUGINS["first"]({"x": 1})
    assert isinstance(plugin, UserPlugin)
    assert plugin.name == "first"


def test_nothing_is_found_where_nothing_is() -> None:
    before = dict(PLUGINS)
    assert install_plugins() == ()
    assert before == PLUGINS


def test_installing_again_replaces(tmp_path: Path) -> None:
    write(tmp_path, a=MODULE)
    assert install_plugins(tmp_path) == install_plugins(tmp_path) == ("NAME",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import nowhere_at_all", "cannot be loaded: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("def", "cannot be loaded: SyntaxError"),
        ("x = 1", "has no table PLUGINS"),
        ("PLUGINS = ['quiet']", "has no table PLUGINS"),
        ("PLUGINS = {1: print}", "expected the name of a plugin, was 1"),
        ("PLUGINS = {'quiet': 'Quiet'}", r"PLUGINS\['quiet'\]: expected a builder"),
        ("PLUGINS = {'binpack': print}", "'binpack' is the name of a built-in plugin"),
    ],
)
def test_a_module_that_is_none_is_named(tmp_path: Path, text: str, words: str) -> None:
    write(tmp_path, broken=text)
    with pytest.raises(ConfigError, match=words) as caught:
        install_plugins(tmp_path)
    assert caught.value.source == str(tmp_path / "broken.py")


def test_a_bad_module_installs_nothing(tmp_path: Path) -> None:
    write(tmp_path, a=MODULE, b="PLUGINS = {'gang': print}")
    with pytest.raises(ConflictError):
        install_plugins(tmp_path)
    assert "NAME" not in PLUGINS


def test_two_of_one_name_conflict(tmp_path: Path) -> None:
    write(tmp_path, a=MODULE, b=MODULE)
    with pytest.raises(ConflictError, match=rf"'NAME' is already in {tmp_path / 'a.py'}"):
        install_plugins(tmp_path)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        install_plugins(tmp_path / "nowhere")


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, loader.GROUP)


def install(monkeypatch: pytest.MonkeyPatch, points: EntryPoints) -> None:
    def select(group: str) -> EntryPoints:
        return points.select(group=group)

    monkeypatch.setattr(loader, "entry_points", select)


def test_entry_points_of_installed_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints([entry("zeta", "collections:OrderedDict"), entry("alpha", "collections:UserDict")])
    install(monkeypatch, points)
    assert install_plugins() == ("alpha", "zeta")


@pytest.mark.parametrize("value", ["nowhere_at_all:Plugin", "collections:Nothing"])
def test_an_entry_point_that_leads_nowhere_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    install(monkeypatch, EntryPoints([entry("lost", value)]))
    with pytest.raises(ConfigError, match=f"entry point lost = {value}: cannot be loaded"):
        install_plugins()


@pytest.mark.parametrize("line", ["import sys; sys.exit(0)", "raise GeneratorExit", "raise BaseException('own')"])
def test_a_module_that_would_end_the_process_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "evil.py").write_text(line)
    with pytest.raises(ConfigError, match=r"evil\.py: cannot be loaded: (SystemExit|GeneratorExit|BaseException)"):
        install_plugins(tmp_path)


BROKEN = MODULE.replace("def on_session_open(self, session): ...", "def on_session_open(self, session):\n        1 / 0")


def test_failing_plugin_is_warned_of_once_with_file_and_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    install_plugins(write(tmp_path, a=BROKEN.replace("NAME", "first")))
    text = "actions: allocate\ntiers: [{plugins: [{name: first}]}]\n"
    config = parse_scheduler_config(text, source="c")
    for _ in range(3):
        close_session(open_world(config))
    (record,) = caplog.records
    line = BROKEN.splitlines().index("        1 / 0") + 1
    assert f"({tmp_path / 'a.py'}:{line})" in record.getMessage()
    assert "ZeroDivisionError" in record.getMessage()


def test_plugin_whose_file_changed_is_found(tmp_path: Path) -> None:
    install_plugins(write(tmp_path, a=MODULE.replace("NAME", "first"), b=MODULE.replace("NAME", "second")))
    assert changed_plugins() == []
    write(tmp_path, b=BROKEN.replace("NAME", "second"))
    assert changed_plugins() == ["second"]
    (tmp_path / "a.py").unlink()
    assert changed_plugins() == ["first", "second"]
