"""Objects by name: whatever comes and goes, lists are in order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.api import object_tables as tables
from pumice.cluster.api.object_tables import Name, ObjectRecord, Ordered

NAMES = st.tuples(st.sampled_from(["", "a", "a-b", "b"]), st.text("abc-", min_size=1, max_size=3))


def record(number: int) -> ObjectRecord:
    return ObjectRecord(b"%d" % number, number, f"u{number}")


@given(st.lists(st.tuples(st.booleans(), NAMES), max_size=120))
def test_it_is_a_sorted_mapping(steps: list[tuple[bool, Name]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_RUN", 2)  # so that runs are split and emptied all the time
        held = Ordered()
        model: dict[Name, ObjectRecord] = {}
        for number, (comes, name) in enumerate(steps):
            if comes:
                model[name] = record(number)
                held.add(name, model[name])
            elif name in model:
                assert held.pop(name) is model.pop(name)
            else:
                with pytest.raises(KeyError):
                    held.pop(name)
            assert list(held.sorted_names()) == sorted(model)
            assert list(held.sorted_records()) == [model[each] for each in sorted(model)]
            for namespace in ("", "a", "a-b", "b", "nowhere"):
                inside = sorted(each for each in model if each[0] == namespace)
                assert list(held.sorted_names(namespace)) == inside
                assert list(held.sorted_records(namespace)) == [model[each] for each in inside]
        assert list(held.names()) == list(model)
        assert len(held) == len(model)
