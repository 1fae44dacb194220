"""Pseudonyms are in the order of the names, whatever the order in which these come."""

from hypothesis import given
from hypothesis import strategies as st

from pumice.core.pseudonyms import KEPT, Place, Pseudonyms, between

NAMES = st.lists(st.text("ab-.9", min_size=1, max_size=6) | st.sampled_from(KEPT), max_size=60)


def given_out(names: list[str], step: int = 7) -> tuple[Pseudonyms, list[tuple[str, Place]]]:
    told: list[tuple[str, Place]] = []
    found = Pseudonyms(lambda: step, lambda name, place: told.append((name, place)))
    for name in names:
        found.of(name)
    return found, told


@given(NAMES, st.integers(1, 1_000_000))
def test_they_are_ordered_as_the_names_are(names: list[str], step: int) -> None:
    found, _ = given_out(names, step)
    ordered = sorted({*names, *KEPT})
    written = [found.of(name) for name in ordered]
    assert written == sorted(set(written))


@given(NAMES)
def test_what_was_given_is_given_again(names: list[str]) -> None:
    found, told = given_out(names)
    again = Pseudonyms(lambda: 1, lambda name, place: told.append((name, place)))
    for name, place in list(told):
        again.restore(name, place)
    assert [again.of(name) for name in names] == [found.of(name) for name in names]
    assert len(told) == len({*names} - set(KEPT))


def test_names_that_come_in_order_stay_short_both_ways() -> None:
    numbers = [f"n{number:05d}" for number in range(3_000)]
    for names in (numbers, numbers[::-1]):
        found, _ = given_out(names, step=500)
        assert max(len(found.of(name)) for name in names) <= 7


def test_names_that_mean_something_stay_and_nothing_of_the_others_does() -> None:
    found, _ = given_out(["payroll", "secret-project"])
    assert [found.of(name) for name in KEPT] == [*KEPT]
    assert not any("pay" in found.of(name) or "secret" in found.of(name) for name in ("payroll", "secret-project"))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=200))
def test_there_is_always_a_place_between(where: list[int]) -> None:
    places: list[Place] = []
    for at in where:
        index = min(at, len(places))
        before = places[index - 1] if index else ()
        after = places[index] if index < len(places) else None
        places.insert(index, between(before, after, 1 << 30))
    assert places == sorted(set(places))
