"""What the documents say is tried: commands exist with their options, links lead somewhere, pictures are current."""

import ast
import configparser
import re
import shlex
import tomllib
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from docs.making import build_site, draw_storm, list_built, try_commands, write_reference, write_settings
from docs.making import draw_actors as drawing
from pumice import plugins
from pumice.actors.api_server.faults.strikes import KINDS as FAULTS
from pumice.actors.system.references import REFERENCES
from pumice.actors.system.roles import ROLES
from pumice.cli.app import COMMANDS, load
from pumice.cluster.api.kinds import KINDS
from pumice.proof.storm.script.profiles import profiles
from tests.kit import source
from tests.promises import promised

DOCUMENTS: Final = source.files(".md")
FENCE: Final = re.compile(r"^```(?:sh|console|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
ROW: Final = re.compile(r"^\| `(pumice [^`]+)`", re.MULTILINE)
FILE: Final = re.compile(r"(\.(yaml|conf|csv|db)|/)$")
NAMED_FILE: Final = re.compile(r"`([\w.-]+/[\w./-]*)`")
NAMED_NEAR: Final = re.compile(r"`([\w.-]+(?:/[\w.-]+)*(?:/|\.(?:py|md|yaml|json)))`")
NAMED_MODULE: Final = re.compile(r"(?<![\w./-])([\w/-]+\.py)\b")
DOTTED: Final = re.compile(r"`((?:pumice\.)?(?:actors|cluster|core|storage|config|pumice)(?:\.\w+)+)`")
FOLDERS: Final = {*source.LAYERS, "docs", "examples", "tests"}
TYPE: Final = re.compile(r"\b[A-Z][a-z]\w*")
HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)


PARENTS: Final = {"Actor", "EffectWorker", "Reconciler"}


class Command(NamedTuple):
    """One `pumice …` command line and the document that shows it."""

    document: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.document}: {shlex.join(self.words)}"


def shown() -> Iterator[Command]:
    """Every pumice command in a fenced block or in the first column of a table."""
    for path in DOCUMENTS:
        text = path.read_text("utf-8")
        for line in "\n".join(FENCE.findall(text)).replace("\\\n", " ").splitlines():
            for part in re.split(r"&&|\|", line):
                yield from commands(source.relative(path), part)
        for row in ROW.findall(text):
            yield from commands(source.relative(path), row)


def commands(document: str, line: str) -> Iterator[Command]:
    """The command in one line of shell, if it is pumice that is called."""
    words = shlex.split(line, comments=True)
    if words and Path(words[0]).name == "pumice":
        yield Command(document, tuple(words[1:]))


def known_commands() -> dict[str, Any]:
    """The commands of the command line by name, as typer has built them."""
    return {name: load(name) for name in COMMANDS}


@pytest.mark.parametrize("command", list(shown()), ids=str)
def test_a_shown_command_exists_with_its_options(command: Command) -> None:
    known = known_commands()
    name = next((word for word in command.words if not word.startswith("-")), None)
    if name is None:
        assert set(command.words) <= {"--help", "-h", "--version"}
        return
    assert name in known, f"there is no `pumice {name}`"
    options = {
        spelling for parameter in known[name].params for spelling in (*parameter.opts, *parameter.secondary_opts)
    }
    used = {word.partition("=")[0] for word in command.words if word.startswith("-") and word != "-"}
    assert used <= options | {"--help", "-h"}


def test_every_command_is_shown_on_the_page_of_commands() -> None:
    named = {command.words[0] for command in shown() if command.document == "docs/reference/commands.md"}
    assert set(known_commands()) <= named


def test_the_page_of_features_lists_what_is_built() -> None:
    text = list_built.PAGE.read_text("utf-8")
    assert text == list_built.listed(text), "run `nox -s documents`"
    assert all(f"| {what} | " in text for what in ("actions", "plugins"))


def test_page_of_workloads_says_what_each_rule_does() -> None:
    text = list_built.WORKLOADS.read_text("utf-8")
    assert text == list_built.looked_after(text), "run `nox -s documents`"


def test_readme_of_controllers_names_each_module() -> None:
    room = Path("cluster/controllers")
    modules = {path.name + "/" * path.is_dir() for path in room.iterdir() if path.suffix in ("", ".py")}
    text = (room / "README.md").read_text("utf-8")
    assert [name for name in sorted(modules) if name[:2] != "__" and f"`{name}`" not in text] == []


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as a forge makes them."""
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(path.read_text("utf-8")))
    return {heading.strip().replace(" ", "-") for heading in words}


@pytest.mark.parametrize("path", DOCUMENTS, ids=source.relative)
def test_links_lead_somewhere(path: Path) -> None:
    for link in LINK.findall(path.read_text("utf-8")):
        if link.startswith(("https://", "mailto:")):
            continue
        place, _, anchor = link.partition("#")
        target = (path.parent / place).resolve() if place else path
        assert target.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


@pytest.mark.parametrize("path", DOCUMENTS, ids=source.relative)
def test_files_that_are_named_exist(path: Path) -> None:
    named = [name for name in NAMED_FILE.findall(path.read_text("utf-8")) if name.partition("/")[0] in FOLDERS]
    assert [name for name in named if not (source.ROOT / name).exists()] == []


def layer_of(path: Path) -> str | None:
    """The layer in whose folders a document lies; None for the documents beside them."""
    first = source.relative(path).partition("/")[0]
    return first if first in source.LAYERS else None


def near(path: Path) -> Iterator[tuple[str, list[Path]]]:
    """What a folder's README names, and where that may lie: in the folder, in one that the line or the heading names
    before it, or below the root.
    """
    inside: list[Path] = []
    for line in path.read_text("utf-8").splitlines():
        folders = [path.parent / name for name in re.findall(r"\b([\w/]+/)", line.partition("|")[2] or line)]
        if line.startswith(("#", "| in ")):
            inside = folders
        for name in NAMED_NEAR.findall(line):
            yield name, [path.parent, source.ROOT, *inside, *folders]


@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if source.relative(path).partition("/")[0] in source.LAYERS],
    ids=source.relative,
)
def test_a_readme_names_files_that_exist(path: Path) -> None:
    assert [name for name, folders in near(path) if not any((folder / name).exists() for folder in folders)] == []


@pytest.mark.parametrize("layer", source.LAYERS)
def test_the_code_names_modules_that_exist(layer: str) -> None:
    """A file that a docstring or a comment names lies beside it, or below the root."""
    lost = {
        f"{source.relative(path)}: {name}"
        for path in source.files(".py", folders=(layer,))
        for name in NAMED_MODULE.findall(path.read_text("utf-8"))
        if not ((path.parent / name).exists() or (source.ROOT / name).exists())
    }
    assert lost == set()


@pytest.mark.parametrize("layer", source.LAYERS)
def test_dotted_names_lead_somewhere(layer: str) -> None:
    """What a docstring or a comment calls `pumice.core.x` is a module, or stands in one."""
    lost = {
        f"{source.relative(path)}: {name}"
        for path in source.files(".py", folders=(layer,))
        for name in DOTTED.findall(path.read_text("utf-8"))
        if not is_defined(name)
    }
    assert lost == set()


def is_defined(name: str) -> bool:
    """Whether the name is a folder or a module, or something that one of them speaks of, or a part of that."""
    parts = name.split(".")
    for left in range(3):
        path = source.path_of(".".join(parts[: len(parts) - left]))
        found = next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.exists()), None)
        if found is not None:
            return left == 0 or parts[-left] in found.read_text("utf-8")
    return False


def test_the_picture_is_what_the_script_draws() -> None:
    for each in (drawing, draw_storm):
        assert each.PICTURE.read_text("utf-8") == each.draw(), "run `nox -s documents`"


def actors() -> set[str]:
    """Modules in which an actor is defined, by dotted name; a parent of actors is none."""
    return {
        source.module_of(path)
        for path, tree in source.modules("actors")
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name not in PARENTS
        if any(ast.unparse(parent).partition("[")[0] in PARENTS for parent in node.bases)
    }


def test_the_picture_shows_every_actor() -> None:
    titles = [box.title for box in drawing.BOXES]
    assert {role.name: titles.count(role.box) for role in ROLES} == {role.name: 1 for role in ROLES}
    assert "supervisor" in titles


def test_the_picture_shows_who_sends_to_whom() -> None:
    box = {role.name: role.box for role in ROLES}
    wanted = {(box[role.name], box[receiver]) for role in ROLES for receiver in role.sends.values()}
    drawn = [link for arrow in drawing.ARROWS for link in product(arrow.senders, arrow.receivers)]
    assert sorted(drawn) == sorted(wanted)


def test_the_picture_shows_what_is_held_together_and_by_whom() -> None:
    box = {role.name: role.box for role in ROLES}
    for reference in REFERENCES:
        (note,) = [each.note for each in drawing.BOXES if (each.title, each.style) == (reference.what, "shared")]
        titles = {box[role].removesuffix(" × N") for role in reference.roles}
        assert len(titles) > 3 or all(title in note for title in titles)


def test_the_settings_are_what_the_script_writes() -> None:
    assert write_settings.PAGE.read_text("utf-8") == write_settings.write(), "run `nox -s documents`"


def test_actors_are_kept_apart() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(source.ROOT / ".importlinter")
    apart = set(contracts["importlinter:contract:actors-are-strangers"]["modules"].split())
    rooms = {name: [each for each in apart if name == each or name.startswith(f"{each}.")] for name in actors()}
    assert {name: len(found) for name, found in rooms.items() if len(found) != 1} == {}, "stands in one room each"
    inhabited = {found[0] for found in rooms.values()}
    folders = {each: source.path_of(each) for each in apart}
    files = ("machine.py", "rule.py")
    machines = {each for each, folder in folders.items() if any((folder / name).exists() for name in files)}
    assert apart - inhabited - machines == {"pumice.actors.runtime.supervisor"}


@pytest.mark.parametrize("document", try_commands.DOCUMENTS)
def test_the_examples_hold_what_is_named(document: str) -> None:
    """The files that a command reads lie in examples/, or a command before it has made them."""
    made, folders = {"kubeconfig", "pumice.db"}, tuple[str, ...]()
    for line in (line for block in try_commands.blocks(document) for line in block):
        words = shlex.split(line)
        if words[0] == "mkdir":
            folders += tuple(f"{word}/" for word in words[1:])
        parts = [part for word in words for part in re.sub("^(openb|journal):", "", word).split(",")]
        named = {part for part in parts if FILE.search(part) and not part.startswith(folders)}
        makes = ("--db",) if {"run", "mirror"} & {*words} else ("--save", "--backup", "--csv", "-o")
        made |= {file for before, file in pairwise(words) if before in makes}
        missing = {name for name in named - made if not (source.ROOT / "examples" / name).exists()}
        assert not missing, line


@pytest.mark.parametrize("document", try_commands.DOCUMENTS)
def test_who_serves_is_not_waited_for(document: str) -> None:
    """A command that would serve until Ctrl-C is stopped when it has answered."""
    lines = [line for block in try_commands.blocks(document) for line in block if " --http " in line]
    serve = [line for line in lines if not try_commands.CLIENT.match(line) and not line.endswith(try_commands.BESIDE)]
    assert [line for line in serve if not try_commands.SERVER.match(line)] == []


def test_the_build_finds_its_commands_in_the_readme() -> None:
    text = (source.ROOT / "README.md").read_text("utf-8")
    found = dict(re.findall(r"<!-- ci: (\w+) -->\n```sh\n(.+)\n```", text))
    assert found["tests"].startswith("python3.11 -m venv .venv && ")
    assert re.fullmatch(r"\.venv/bin/python -m pytest( -n \w+)?", found["tests"].split(" && ")[-1])
    assert found["run"].endswith(".venv/bin/pumice run --until idle")


def test_the_page_of_commands_names_what_they_need_besides() -> None:
    """Its set-up installs none of the extras, and the one for development, with which its commands are tried, all."""
    extras = tomllib.loads((source.ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    dev = extras.pop("dev")
    (named,) = re.findall(
        r"pip install -q '\.\[([\w,]+)\]'`", (source.ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
    )
    assert set(named.split(",")) == extras.keys()
    assert [each for needed in extras.values() for each in needed if each not in dev] == []


def test_commands_of_all_documents_can_be_run_in_one_folder() -> None:
    lines = [line for document in try_commands.DOCUMENTS for block in try_commands.blocks(document) for line in block]
    made = [name for line in lines for name in re.findall(r"--(?:save|backup) (\S+)", line)]
    kept = {name for line in lines if line.startswith("pumice run") for name in re.findall(r"--db (\S+)", line)}
    assert len(made) == len({*made} - kept) > 1


def test_the_page_about_storms_names_every_fault_and_profile() -> None:
    page = (source.ROOT / "docs" / "explanation" / "storms.md").read_text("utf-8")
    named = set(re.findall(r"`([a-z-]+)`", page))
    assert FAULTS | profiles().keys() <= named


def names_of_points() -> set[str]:
    """What the modules of the extension points define or import."""
    found = set[str]()
    for _, module in source.modules("core/session/points"):
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.ImportFrom):
                found |= {each.name for each in node.names}
    return found


def test_types_in_the_tables_of_extension_points_exist() -> None:
    rows = re.findall(r"^\|[^|]+\|(.*)\|$", (source.ROOT / "core/plugins/README.md").read_text("utf-8"), re.MULTILINE)
    named = {name for row in rows for code in re.findall(r"`[^`]+`", row) for name in TYPE.findall(code)}
    assert {"JobColumn", "GangEvictor", "ValidateResult"} <= named
    assert not named - {"None"} - set(plugins.__all__) - names_of_points()


def test_lists_of_the_reference_are_what_the_script_writes() -> None:
    different = [name for name, write in write_reference.PAGES.items() if page_of(name) != write()]
    assert different == [], "run `nox -s documents`"


def page_of(name: str) -> str:
    return (write_reference.FOLDER / name).read_text("utf-8")


def test_kinds_that_are_not_served_have_no_row() -> None:
    text = page_of("not-served.md").partition("## Subresources")[0]
    absent = {kind for kinds in re.findall(r"^\| \S+ \| (.+) \|$", text, re.MULTILINE) for kind in kinds.split(", ")}
    served = {kind.kind for kind in KINDS.values()}
    assert len(absent) > 10
    assert absent & served == set()


def test_every_page_has_its_place_in_the_site() -> None:
    """Every document of docs/ stands in the navigation once, and every entry of the navigation exists."""
    text = (source.ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    named = re.findall(r"(\S+\.md)$", text, re.MULTILINE)
    tree = sorted(f"tree/{path}" for path in build_site.documents())
    pages = sorted(path.removeprefix("docs/") for path in build_site.own_documents())
    assert sorted(name for name in named if not name.startswith("tree/")) == pages, "mkdocs.yml: nav"
    assert [name for name in named if name.startswith("tree/") and name not in tree] == []


def test_promised_names_stay_and_new_ones_are_listed() -> None:
    was, now = promised.promised(), promised.current()
    assert promised.broken(was, now) == [], "a promised name stays for the major version (docs/stability.md)"
    assert was == now, "new names are promised too: run python -m tests.promises.promised"
