"""What a page is told of a change makes the old board the new one."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pumice.actors.gateway.page import frames
from pumice.core.messages.boards import BoardRead
from pumice.core.messages.events import CycleMeasured
from pumice.core.messages.queue_tables import CardTable

SHAPE = (4, 2, 5)
AMOUNTS = arrays.arrays(np.float64, SHAPE, elements=st.sampled_from([0.0, 1.0, 2.5]))


@given(AMOUNTS, AMOUNTS)
def test_a_change_is_all_that_differs(before: npt.NDArray[np.float64], after: npt.NDArray[np.float64]) -> None:
    told = json.loads(frames.event("change", frames.change(before, after, BoardRead(1, 1))).split(b"data: ")[1])
    page = before.copy()
    for number, part in enumerate(frames.PARTS):
        for resource, line in enumerate(told.get(part, [])):
            page[number, resource, told["rows"]] = line
    assert page.tolist() == after.tolist()
    assert all((before[:, :, row] != after[:, :, row]).any() for row in told["rows"])


def test_a_line_end_in_a_name_ends_no_event() -> None:
    said = frames.event("board", {"nodes": ["a\n\ndata: x", "</script>"]})
    assert said.count(b"\n") == 3
    assert json.loads(said.split(b"data: ", 1)[1])["nodes"] == ["a\n\ndata: x", "</script>"]


def test_times_of_a_cycle() -> None:
    measured = CycleMeasured(7, 0.5, 0.1, 0.1, {"allocate": 0.2}, {"OnSessionOpen": {"drf": 0.05}}, {"scheduled": 3})
    found = frames.cycle(measured)
    assert (found["cycle"], found["plugins"], found["bound"]) == (7, {"OnSessionOpen drf": 0.05}, 3)


def test_cards_by_node() -> None:
    numbers = np.array([[1.0, 2.0], [10.0, 20.0], [50.0, 0.0], [100.0, 100.0]])
    table = CardTable(["n0", "n0"], ["a", "b"], numbers.tobytes())
    assert frames.cards(table) == {"n0": [["a", 1.0, 10.0, 50.0, 100.0], ["b", 2.0, 20.0, 0.0, 100.0]]}
    assert frames.cards(CardTable()) == {}
