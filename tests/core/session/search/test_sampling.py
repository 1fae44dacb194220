"""Sampling against a slow walk over the node list."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.session.carry import Carry
from pumice.core.session.search.searches import Sampling, look


@given(st.data())
def test_looking_stops_at_the_first_feasible_node_too_many(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 40))
    sampling = Sampling(data.draw(st.integers(1, 99)), data.draw(st.integers(1, count - 1)), 5)
    if not sampling.applies(count):
        return
    arrival = np.array(data.draw(st.permutations(range(count))), dtype=np.intp)
    feasible = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    start = data.draw(st.integers(0, 3 * count))
    carry = Carry(start=start)
    taken, seen = look(sampling, carry, arrival, feasible)

    enough, slow_taken, slow_seen = sampling.enough(count), set[int](), set[int]()
    for step in range(count):
        row = int(arrival[(start + step) % count])
        slow_seen.add(row)
        if feasible[row]:
            if len(slow_taken) == enough:
                break
            slow_taken.add(row)
    assert set(np.flatnonzero(taken).tolist()) == slow_taken
    assert set(np.flatnonzero(seen).tolist()) == slow_seen
    assert carry.start == (start % count + len(slow_seen)) % count


def test_volcanos_adaptive_default() -> None:
    adaptive = Sampling(0, 100, 5)
    assert [adaptive.enough(n) for n in (100, 101, 1000, 5000, 10_000)] == [100, 100, 420, 500, 500]
