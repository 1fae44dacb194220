"""A test that hits its time limit fails alone."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from types import FrameType, TracebackType

import pytest

from tests.conftest import pytest_runtest_makereport, with_lines


def a_frame() -> FrameType:
    """Return a frame whose function has instructions of no line: those that leave the block."""
    with nullcontext():
        frame = inspect.currentframe()
    assert frame is not None
    return frame


def without_line(frame: FrameType, after: TracebackType | None = None) -> TracebackType:
    nowhere = next(start for start, _, line in frame.f_code.co_lines() if line is None)
    found = TracebackType(after, frame, nowhere, -1)
    assert found.tb_lineno is None
    return found


def test_traceback_without_a_line_gets_that_of_its_function() -> None:
    frame = a_frame()
    known = TracebackType(None, frame, frame.f_lasti, 30)
    mended = with_lines(without_line(frame, known))
    assert mended is not None
    assert mended.tb_next is not None
    assert (mended.tb_lineno, mended.tb_next.tb_lineno) == (frame.f_code.co_firstlineno, 30)


def test_failure_without_a_line_is_reported_with_its_causes() -> None:
    def fails() -> None:
        cause = ValueError("cause")
        cause.__traceback__ = without_line(a_frame())
        raise RuntimeError("struck").with_traceback(without_line(a_frame())) from cause

    call = pytest.CallInfo[None].from_call(fails, "call")
    pytest_runtest_makereport(call)
    assert call.excinfo is not None
    said = str(call.excinfo.getrepr(style="long"))
    assert "struck" in said
    assert "cause" in said
