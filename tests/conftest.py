"""Fixtures every test may use, and the settings of Hypothesis.

Two plugins run asynchronous tests here, each where it is asked to and nowhere else:

* `@pytest.mark.anyio`: anyio's plugin, once on asyncio and once on trio. This is the way to test an actor.
* `@pytest.mark.trio`: pytest-trio, for tests with timers; its `autojump_clock` fixture makes time virtual.
"""

import gc
import os
import sys
from types import TracebackType

import pytest
from hypothesis import HealthCheck, settings

from pumice.core.state import calm_jobs, kept_columns

# A busy machine is no reason to fail, and a build that fails must fail again when it is repeated.
# Some examples of what has no number of its own: others come with every run that is no build, and `nox -s properties`
# tries more.
EXAMPLES = int(os.environ.get("PUMICE_TEST_EXAMPLES", "10"))
settings.register_profile("daily", deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("daily"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "daily")

# Hundreds of processes start from the same modules, which are compiled once, whatever the environment says; and what
# is collected stays, so that looking for garbage in it (a third of the time that collecting tests takes) finds none.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
gc.disable()

os.environ["PUMICE_OUTPUT"] = "json"  # tests read what scripts would ask for; a person gets tables
SLOW_TIMEOUT_S = 600


def pytest_configure() -> None:
    """Decide as on large clusters: on small ones all columns are copied for each session, and all jobs looked at."""
    kept_columns.is_whole_cheaper = lambda stale, count: False
    calm_jobs.are_many = lambda jobs: True


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop an anyio test runs on: every such test runs on both."""
    name: str = request.param
    return name


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are processors: for a third of their time tests wait."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is slow by its nature has more time before it counts as hung."""
    for item in items:
        if item.get_closest_marker("slow") is not None and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SLOW_TIMEOUT_S))


def pytest_collection_finish() -> None:
    """Garbage is looked for again, in what the tests themselves make."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> None:
    """A time limit that strikes where Python knows no line breaks pytest's report, and with it the whole run."""
    error = each = call.excinfo.value if call.excinfo is not None else None
    while each is not None:
        each.__traceback__ = with_lines(each.__traceback__)
        each = each.__cause__ or each.__context__
    if error is not None and error.__traceback__ is not None:
        call.excinfo = pytest.ExceptionInfo[BaseException].from_exc_info((type(error), error, error.__traceback__))


def with_lines(traceback: TracebackType | None) -> TracebackType | None:
    """Return the traceback; where a line is not known (`tb_lineno` None), its function's first one stands for it."""
    entries = list[TracebackType]()
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    for entry in reversed(entries):
        line: int | None = getattr(entry, "tb_lineno")  # noqa: B009 - typed as a number, and may be None
        first = entry.tb_frame.f_code.co_firstlineno
        traceback = TracebackType(traceback, entry.tb_frame, entry.tb_lasti, first if line is None else line)
    return traceback
