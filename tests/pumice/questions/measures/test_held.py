"""Amounts held by queues, namespaces and users against sums over seconds, and the bill."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.config.errors import ConfigError
from pumice.core.messages.events import ConfigLoaded, Mutation
from pumice.core.objects.metadata import Object
from pumice.questions.measures import beginning
from pumice.questions.measures.held import HeldGroup, HeldResult, Prices, held, read_prices
from pumice.storage import codec
from pumice.storage.checkpoint import CheckpointState
from pumice.storage.journal import API, CONFIG, Record, Stored
from pumice.storage.memory import MemoryJournal
from pumice.storage.retention import Rotation
from pumice.storage.sqlite import SqliteJournal, open_history
from pumice.storage.sqlite.chained import segments_of
from pumice.storage.sqlite.segments import Archive
from tests.kit import pod
from tests.pumice.questions.measures.told import on

BEGAN = 1000
END = 40
Pod = tuple[str, str, int, int, int]
"""Namespace, user, cores, and the seconds at which it is bound and ends (later than END: it still runs)."""
PODS: st.SearchStrategy[list[Pod]] = st.lists(
    st.tuples(
        st.sampled_from(["red", "blue"]),
        st.sampled_from(["ann", "bob", ""]),
        st.integers(1, 4),
        st.integers(1, 20),
        st.integers(21, 60),
    ),
    max_size=8,
)
PRICES = Prices({"cpu": 7.2, "memory": 1.0, "nvidia.com/gpu": 100.0}, "EUR")


def records(pods: list[Pod]) -> list[Record]:
    changes: list[tuple[int, int, str, Object]] = [(0, 0, "ADDED", pod("nobody", namespace="red"))]
    for number, (namespace, user, cpu, bound, ended) in enumerate(pods):
        made = pod(f"p{number}", namespace=namespace, cpu=str(cpu), memory="1Gi")
        made["metadata"]["uid"] = f"uid-{number}"
        made["metadata"]["annotations"] = {"pumice.dev/user": user} if user else {}
        changes.append((0, 1, "ADDED", made))
        changes.append((bound, 2, "MODIFIED", on(made, "n0")))
        if ended <= END:
            changes.append((ended, 3, "MODIFIED", on(made, "n0", "Succeeded")))
    changes.append((END, 4, "DELETED", pod("nobody", namespace="red")))
    found: list[Record] = []
    for revision, (second, _, event, obj) in enumerate(sorted(changes, key=lambda each: each[:2]), start=1):
        meta = obj["metadata"]
        change = Mutation(revision, event, "Pod", meta["namespace"], meta["name"], codec.pack(obj))
        found.append(Record(API, codec.encode(change), 0, float(BEGAN + second)))
    return found


async def ask(pods: list[Pod], by: HeldGroup, begin: int | None, end: int | None, prices: Prices | None) -> HeldResult:
    journal = MemoryJournal()
    await journal.append(records(pods))
    since, until = (None if one is None else float(BEGAN + one) for one in (begin, end))
    return await held(journal, by, since, until, prices)


def asked(pods: list[Pod], by: HeldGroup, begin: int | None, end: int | None, prices: Prices | None) -> HeldResult:
    return anyio.run(ask, pods, by, begin, end, prices)


@given(
    pods=PODS,
    by=st.sampled_from([HeldGroup.NAMESPACE, HeldGroup.USER]),
    begin=st.integers(0, 30),
    long=st.integers(1, 50),
)
def test_sum_of_seconds_is_the_integral(pods: list[Pod], by: HeldGroup, begin: int, long: int) -> None:
    found = asked(pods, by, begin, begin + long, PRICES)
    expected: dict[str, tuple[int, int]] = {}
    for second in range(begin, min(begin + long, END)):
        for namespace, user, cpu, bound, ended in pods:
            if bound <= second < ended:
                name = namespace if by is HeldGroup.NAMESPACE else user or "(none)"
                cores, count = expected.get(name, (0, 0))
                expected[name] = cores + cpu, count + 1
    assert {row.name: (row.held_s["cpu"], row.held_s["pods"]) for row in found.rows} == expected
    for row in (*found.rows, found.total):
        cost = row.held_s.get("cpu", 0.0) / 3600 * 7.2 + row.held_s.get("memory", 0.0) / (1 << 30) / 3600
        assert row.cost == pytest.approx(cost, abs=1e-5)
    assert found.total.cost == pytest.approx(sum(row.cost or 0.0 for row in found.rows), abs=1e-5)


def test_without_moments_all_of_the_journal_counts() -> None:
    found = asked([("red", "", 2, 10, 25), ("red", "", 1, 20, 60)], HeldGroup.NAMESPACE, None, None, None)
    assert (found.begin, found.end) == (BEGAN, BEGAN + END)
    assert found.rows[0].held_s["cpu"] == 2 * 15 + 1 * 20
    assert found.rows[0].cost is None


@pytest.mark.anyio
async def test_a_last_record_of_another_kind_ends_what_is_held() -> None:
    journal = MemoryJournal()
    loaded = codec.encode(ConfigLoaded("", "", "later"))
    await journal.append([*records([("red", "", 2, 10, 60)]), Record(CONFIG, loaded, 0, float(BEGAN + END + 7))])
    found = await held(journal, HeldGroup.NAMESPACE, None, None, None)
    assert (found.end, found.total.held_s["cpu"]) == (BEGAN + END + 7, 2 * (END + 7 - 10))


@pytest.mark.parametrize("end", [10, 20, 30, END])
def test_records_after_the_last_moment_are_not_read(end: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [("red", "ann", 1 + number % 3, 1 + number, 21 + number) for number in range(19)]
    expected = asked(pods, HeldGroup.USER, 3, end, None)
    read: list[float] = []

    class Noting(MemoryJournal):
        async def read(self, after: int = 0, kinds: Collection[str] | None = None, limit: int = 10_000) -> list[Stored]:
            found = list(await super().read(after, kinds, limit))
            read.extend(each.at for each in found)
            return found

    monkeypatch.setattr(beginning, "BATCH", 3)
    monkeypatch.setattr(f"{__name__}.MemoryJournal", Noting)
    assert asked(pods, HeldGroup.USER, 3, end, None) == expected
    assert end == END or BEGAN + end < max(read) <= BEGAN + end + 4


@pytest.mark.anyio
async def test_segments_before_the_moment_are_not_needed(anyio_backend: str, tmp_path: Path) -> None:
    pods = [("red", "ann", 1 + number % 3, 1 + number, 21 + number) for number in range(19)]
    path, state = tmp_path / "pumice.db", CheckpointState()
    async with await SqliteJournal.open(path, archived=True) as journal:
        archive, written = Archive(journal, path, Rotation(records=1)), records(pods)
        for place in range(0, len(written), 8):
            before = (await journal.head()).sequence
            await journal.append(written[place : place + 8])
            stored = await journal.read(before)
            for each in stored:
                state.note(each)
            await journal.save_checkpoint(state.checkpoint(stored[-1].at))
            await archive.rotate()
    assert len(segments_of(path)) > 3
    for begin in (0, 9, 15, 22, 33):
        expected = await ask(pods, HeldGroup.USER, begin, 39, None)
        async with open_history(path, since=float(BEGAN + begin)) as journal:
            assert (await journal.head()).cut > 0 or begin == 0
            found = await held(journal, HeldGroup.USER, float(BEGAN + begin), float(BEGAN + 39), None)
        assert found.rows == expected.rows


@pytest.mark.anyio
async def test_bill_of_a_cut_journal_says_from_when(anyio_backend: str) -> None:
    journal, state = MemoryJournal(), CheckpointState()
    written = records([("red", "ann", 2, 1, 30), ("red", "bob", 1, 1, 5)])
    await journal.append(written[:6])
    for stored in await journal.read():
        state.note(stored)
    cut = state.checkpoint(float(BEGAN + 5))
    await journal.save_checkpoint(cut)
    await journal.append(written[6:])
    await journal.cut(cut.sequence)
    early, late = [await held(journal, HeldGroup.NAMESPACE, float(begin), None, None) for begin in (BEGAN, BEGAN + 15)]
    assert early.begin == BEGAN + 5
    assert early.total.held_s["cpu"] == 2 * 25
    assert (late.begin, late.total.held_s["cpu"]) == (BEGAN + 15, 2 * 15)
    never = await held(journal, HeldGroup.NAMESPACE, float(BEGAN + 90), None, None)
    assert (never.begin, never.end, never.rows) == (BEGAN + END, BEGAN + END, [])


@pytest.mark.parametrize("text", ["prices: {cpu: -1}", "prices: {cpu: dear}", "cpu: 1", "prices: 3", "["])
def test_broken_prices_are_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"prices\.yaml"):
        read_prices(file)
