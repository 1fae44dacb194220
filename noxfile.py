"""Daily commands as nox sessions: `nox -l` lists them, `nox -s lint` runs one.

They use the environment that nox itself runs in and install nothing.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "types", "layers", "tests"]

KILLS = (
    "tests/storage/test_points.py",
    "tests/storage/test_page_copies.py",
    "tests/storage/test_kill.py",
    "tests/pumice/runtime/test_crash.py",
    "tests/actors/system/test_twins.py",
)
"""Tests of what a kill leaves: `nox -s kills` runs them whole."""

CLIENTS = (
    "tests/kubectl",
    "tests/contract",
    "tests/charts",
    "tests/actors/real_clusters/scheduled/test_deployment.py",
    "tests/pumice/elsewhere/test_processes.py",
    "tests/pumice/mirror",
    "tests/pumice/runtime/test_stopped.py",
    "tests/quality/agents",
)
"""Tests that come to a server as clients do: `nox -s roles` has it enforce roles."""

BIN = Path(sys.executable).parent
CODE = ("actors", "cluster", "config", "core", "docs", "examples", "pumice", "storage", "noxfile.py")


def _run(session: nox.Session, tool: str, *arguments: str) -> None:
    session.run(str(BIN / tool), *arguments, external=True)


@nox.session
def tests(session: nox.Session) -> None:
    """All quick tests, on every core; what follows `--` goes to pytest."""
    _run(session, "python", "-m", "pytest", *(session.posargs or ["-n", "auto"]))


@nox.session
def where(session: nox.Session) -> None:
    """Tests that reach a file: `-- core/state/view.py`. Nearest first, each with how many imports lead from it there
    (0: the file's own; 1: it, or what it shares with other tests, imports the file; 2: it imports what imports the
    file; more where nothing is nearer). Tests that start processes (contract, kubectl) reach what these run.
    """
    _run(session, "python", "-m", "tests.where", *session.posargs)


@nox.session
def storms(session: nox.Session) -> None:
    """Storms: hundreds of seeds that must hold; every planted bug must be found and cut down to 20 events."""
    _run(session, "python", "-m", "pytest", "-n", "auto", "-m", "slow", "tests/simulation")


@nox.session
def slow(session: nox.Session) -> None:
    """What else takes seconds: every recorded case, servers on trio, processes that are signalled, wires that break."""
    others = [f"--ignore={place}" for place in ("tests/simulation", *KILLS)]
    _run(session, "python", "-m", "pytest", "-n", "auto", "-m", "slow", "--durations=40", "tests", *others)


@nox.session
def properties(session: nox.Session) -> None:
    """Tests that make up their examples, with 100 of each, or as many as `-- N` says."""
    session.env["PUMICE_TEST_EXAMPLES"] = session.posargs[0] if session.posargs else "100"
    _run(session, "python", "-m", "pytest", "-n", "auto", "-m", "hypothesis and not slow", "tests")


@nox.session
def answers(session: nox.Session) -> None:
    """What `pumice whatif` says of 200 random clusters, or as many as `-- N` says, tried by deciding again."""
    session.env["PUMICE_TEST_CLUSTERS"] = session.posargs[0] if session.posargs else "200"
    _run(session, "python", "-m", "pytest", "-n", "auto", "-m", "slow", "tests/pumice/questions/whatif")


@nox.session
def gate(session: nox.Session) -> None:
    """What `pumice gate` says of forty-six changes of policies, under ten draws of noise, or as many as `-- N` says."""
    session.env["PUMICE_GATE_DRAWS"] = session.posargs[0] if session.posargs else "10"
    _run(session, "python", "-m", "pytest", "-n", "auto", "-m", "slow or not slow", "tests/quality/gate")


@nox.session
def kills(session: nox.Session) -> None:
    """Stop the journal before every write, and cut the power; kill writers and runs 200 times, or as often as `-- N`
    says, and look for losses; compare with twins.
    """
    number = session.posargs[0] if session.posargs else "200"
    session.env["PUMICE_TEST_KILLS"] = number
    session.env["PUMICE_TEST_POINTS"] = "all"
    _run(session, "python", "-m", "pytest", "-n", "auto", "-m", "slow or not slow", "--durations=10", *KILLS)


@nox.session
def roles(session: nox.Session) -> None:
    """Tests of kubectl, helm, Python clients, mirrors and schedulers beside a cluster once more, against servers that
    enforce roles, over TLS, by a user with Kubernetes' role `admin` (kubectl, helm) or `cluster-admin`.
    """
    session.env["PUMICE_TEST_AUTHORIZATION"] = "rbac"
    choice = session.posargs or CLIENTS
    _run(session, "python", "-m", "pytest", "-n", "auto", "-m", "slow or not slow", "--durations=10", *choice)


@nox.session
def soak(session: nox.Session) -> None:
    """Two hours of churn over HTTP, and whether anything grows: docs/explanation/soak.md; `-- --seconds 600`."""
    session.run(sys.executable, "-m", "tests.benches.soak", *session.posargs, external=True)


@nox.session
def floods(session: nox.Session) -> None:
    """Clients that take what they can, and what that does to memory and probes; `-- watches` for one flood."""
    session.run(sys.executable, "-m", "tests.benches.floods", *session.posargs, external=True)


@nox.session
def published(session: nox.Session) -> None:
    """Runs of a published experiment on all its traces (docs/explanation/fgd.md), every point compared; `-- 42`."""
    session.env["PUMICE_TEST_TRACES"] = "all"
    session.env["PUMICE_TEST_SEEDS"] = session.posargs[0] if session.posargs else "42"
    _run(session, "python", "-m", "pytest", "-n", "auto", "-m", "slow", "tests/pumice/test_fgd_example.py")


@nox.session
def examples(session: nox.Session) -> None:
    """Every command of the READMEs as printed, in a copy of examples/."""
    _run(session, "python", "-m", "docs.making.try_commands")


@nox.session
def lint(session: nox.Session) -> None:
    """The linter and the formatter; both only look."""
    _run(session, "ruff", "check", ".")
    _run(session, "ruff", "format", "--check", ".")


@nox.session
def form(session: nox.Session) -> None:
    """Format, and repair what the linter can repair."""
    _run(session, "ruff", "check", "--fix", ".")
    _run(session, "ruff", "format", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Both type checkers, strict."""
    _run(session, "mypy", "--strict")
    _run(session, "pyright", "--pythonpath", str(BIN / "python"))


@nox.session
def security(session: nox.Session) -> None:
    """What bandit finds in the code; what is passed over is listed in pyproject.toml, with the reasons."""
    _run(session, "bandit", "-q", "-c", "pyproject.toml", "-r", *CODE)


@nox.session
def audit(session: nox.Session) -> None:
    """Known weaknesses of what is installed; skipped where nobody can be asked about them."""
    command = (str(BIN / "pip-audit"), "--format", "json", "--progress-spinner", "off", "--skip-editable")
    said = session.run(*command, external=True, silent=True, stderr=subprocess.DEVNULL, success_codes=[0, 1])
    try:
        found = json.loads(str(said))["dependencies"]
    except ValueError:
        session.skip("no network: the index of packages could not be asked")
    if all("skip_reason" in each for each in found):
        session.skip("the index of packages in use here knows of no advisories")
    weak = [f"{each['name']}: {one['id']}" for each in found for one in each.get("vulns", ())]
    if weak:
        session.error("; ".join(weak))


@nox.session
def fuzz(session: nox.Session) -> None:
    """Hostile input for longer: `-- N` examples each (1,000), and every hostile request in several orders."""
    session.env["PUMICE_TEST_FUZZ"] = session.posargs[0] if session.posargs else "1000"
    places = ["tests/pumice/questions/oneshot/test_hostile.py", "tests/pumice/load/test_hostile.py"]
    places += ["tests/actors/gateway/test_hostile_requests.py", "tests/cluster/api/patches/test_operations.py"]
    _run(session, "python", "-m", "pytest", "-n", "auto", "-m", "slow or not slow", *places)


@nox.session
def mutation(session: nox.Session) -> None:
    """Change the code in small ways and see what notices; goes on where it ended: docs/explanation/mutation.md."""
    _run(session, "python", "-m", "tests.mutation", *(session.posargs or ["run"]))


@nox.session
def layers(session: nox.Session) -> None:
    """Who may import whom."""
    with tempfile.TemporaryDirectory() as folder:  # import-linter does not follow the links of pumice/
        shutil.copytree("pumice", Path(folder, "pumice"), ignore=shutil.ignore_patterns("__pycache__"))
        session.env["PYTHONPATH"] = folder
        rules = Path(".importlinter").resolve()
        with session.chdir(folder):
            _run(session, "lint-imports", "--no-cache", "--config", str(rules))


@nox.session
def tidy(session: nox.Session) -> None:
    """Lengths, names, layers and documents, as tests."""
    _run(session, "python", "-m", "pytest", "tests/test_tidy.py", "tests/test_layers.py", "tests/test_docs.py")


@nox.session
def documents(session: nox.Session) -> None:
    """Draw the actors and a storm, and write the lists of settings, fixes, actions, plugins and kinds again."""
    _run(session, "python", "-m", "docs.making.draw_actors")
    _run(session, "python", "-m", "docs.making.draw_storm")
    _run(session, "python", "-m", "docs.making.write_settings")
    _run(session, "python", "-m", "docs.making.write_fixes")
    _run(session, "python", "-m", "docs.making.write_cel")
    _run(session, "python", "-m", "docs.making.list_built")
    _run(session, "python", "-m", "docs.making.write_reference")


@nox.session
def site(session: nox.Session) -> None:
    """The site, into `site/`, with all links followed; then the tutorial. `python -m http.server -d site` shows it."""
    _run(session, "python", "-m", "docs.making.build_site")
    _run(session, "python", "-m", "docs.making.try_tutorial")


@nox.session
def pictures(session: nox.Session) -> None:
    """Take the screenshots of the documents again; needs Chromium."""
    _run(session, "python", "-m", "docs.making.take_pictures")


@nox.session
def api(session: nox.Session) -> None:
    """Pages of the library from its docstrings, into `site/api/`; and what the notebook says, into itself."""
    _run(session, "python", "-m", "docs.making.write_api")
    _run(session, "python", "-m", "docs.making.write_notebook")


@nox.session
def release(session: nox.Session) -> None:
    """Wheel and sdist of the last commit, built twice, checked, installed, tried; `-- --publish` before uploads."""
    _run(session, "python", "-m", "tests.release", *session.posargs)


@nox.session
def image(session: nox.Session) -> None:
    """The Dockerfile, linted; the image's file tree, laid out, measured and entered (as root on Debian 12)."""
    _run(session, "hadolint", "Dockerfile")
    _run(session, "python", "-m", "tests.release.image")


@nox.session
def bench(session: nox.Session) -> None:
    """A benchmark: `-- NAME OPTIONS` as `pumice bench` takes them; also `api`, `mirror` and `fuzz`."""
    _run(session, "python", "-m", "tests.benches", *(session.posargs or ["allocate"]))
