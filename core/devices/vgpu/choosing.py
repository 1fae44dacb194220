"""Which cards a pod gets. Source: Volcano `vgpu/utils.go` (checkNodeGPUSharingPredicateAndScore)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from pumice.core.devices.vgpu import slices
from pumice.core.devices.vgpu.asking import MODE, NVIDIA, READ, CardRequest, likes
from pumice.core.devices.vgpu.codec import Assigned
from pumice.core.devices.vgpu.occupancy import CardOccupancy
from pumice.core.devices.words import short_of

BINPACK, SPREAD = "binpack", "spread"
FULL: Final = 100


class Wanted(NamedTuple):
    """What a task asks for: by container, and the annotations that it depends on."""

    containers: tuple[CardRequest, ...]
    annotations: Mapping[str, str]
    apart: str  # the group whose pods share no card
    rules: frozenset[int]  # those it matches: it keeps off cards of other pods that match one of them
    first: int = -1  # the card to try before all others, -1 for none


class CardRow:
    """The cards of one node while something is tried on them: sharers, MiB and cores in use, by card. `cuts`: of those
    of which slices were taken.
    """

    __slots__ = ("cores", "cuts", "memory", "sharers")

    def __init__(self, state: CardOccupancy, row: int) -> None:
        count = len(state.cards.cards[row])
        self.sharers: list[int] = state.sharers[row, :count].tolist()
        self.memory: list[int] = state.memory[row, :count].tolist()
        self.cores: list[int] = state.cores[row, :count].tolist()
        self.cuts: dict[int, slices.Cut] = {}

    def write(self, state: CardOccupancy, row: int) -> None:
        """Keep what was tried."""
        count = len(self.sharers)
        state.sharers[row, :count] = self.sharers
        state.memory[row, :count] = self.memory
        state.cores[row, :count] = self.cores

    def undo(self, tried: Sequence[tuple[int, int, int]]) -> None:
        """Take back (card, MiB, cores) each: never below nothing."""
        for card, memory, cores in tried:
            self.sharers[card] = max(self.sharers[card] - 1, 0)
            self.memory[card] = max(self.memory[card] - memory, 0)
            self.cores[card] = max(self.cores[card] - cores, 0)


def has_room(asked: CardRequest, memory: Any, split: Any, size: Any, sharers: Any, used: Any, cores: Any) -> Any:
    """Whether a card of so many parts and MiB, of which so much is in use, has room for a container that gets so many
    MiB of it: of one card by numbers, of many by arrays.
    """
    room = (split > sharers) & (size - used >= memory) & (cores + asked.cores <= FULL)
    if asked.cores == FULL:
        room &= sharers == 0
    if asked.cores == 0:
        room &= cores != FULL
    return room


class Choosing(CardOccupancy):
    """What the containers of a pod get on one node, by the policy."""

    def _chosen(self, wanted: Wanted, row: int, tried: CardRow) -> tuple[list[list[Assigned]], float] | None:
        """What each container gets, and the score; `tried` is as if it had been given. None: it does not fit, and
        `tried` has what Volcano leaves behind.
        """
        mode = wanted.annotations.get(MODE)
        if mode is not None and mode != self.cards.mode[row]:
            return None
        given: list[list[Assigned]] = []
        taken: list[tuple[int, int, int]] = []
        score = 0.0
        for asked in wanted.containers:
            found = self._for_container(asked, wanted, row, tried, taken)
            if found is None:
                tried.undo(taken)
                return None
            given.append(found[0])
            score += found[1]
        return given, score

    def _for_container(
        self, asked: CardRequest, wanted: Wanted, row: int, tried: CardRow, taken: list[tuple[int, int, int]]
    ) -> tuple[list[Assigned], float] | None:
        if asked.cards > len(tried.sharers):
            return None
        devices: list[Assigned] = []
        missing, score, liked = asked.cards, 0.0, self._likes(wanted.annotations)
        cards, kinds = self.cards.cards[row], self.cards.kinds[row]
        for card in self._in_order(tried, wanted.first):
            memory = asked.memory_of(cards[card].memory)
            used = tried.sharers[card], tried.memory[card], tried.cores[card]
            if not (liked[kinds[card]] and has_room(asked, memory, cards[card].split, cards[card].memory, *used)):
                continue
            if wanted.apart and self._has_group(row, card, wanted.apart):
                continue
            if wanted.rules and self.reserved.holds(row, card, wanted.rules):
                continue
            name, size = self._try(row, card, memory, tried) or ("", 0)
            if not name:
                continue
            if self._counts_each(row):
                self._take(row, card, name, tried)
            tried.sharers[card] += 1
            tried.memory[card] += size
            tried.cores[card] += asked.cores
            taken.append((card, memory, asked.cores))
            if missing > 0:
                missing -= 1
                devices.append(Assigned(name, NVIDIA, memory, asked.cores))
                score += self._liking(cards[card].memory, card, tried)
            if missing == 0:
                break
        return None if missing > 0 else (devices, score)

    def _card_against(self, asked: CardRequest, wanted: Wanted, row: int, card: int, tried: CardRow) -> list[str]:
        """What speaks against a card, for people."""
        known, kind = self.cards.cards[row][card], self.cards.kinds[row][card]
        memory, found = asked.memory_of(known.memory), list[str]()
        if not self._likes(wanted.annotations)[kind]:
            found.append(f"its type {known.type} is refused")
        if tried.sharers[card] >= known.split:
            found.append(f"{tried.sharers[card]} share it, as many as may")
        found += short_of("MiB", known.memory - tried.memory[card], known.memory, memory)
        found += short_of("% of its cores", FULL - tried.cores[card], FULL, asked.cores)
        if asked.cores == FULL and tried.sharers[card]:
            found.append("asks all of its cores, and others share it")
        if asked.cores == 0 and tried.cores[card] == FULL:
            found.append("none of its cores are left")
        if wanted.apart and self._has_group(row, card, wanted.apart):
            found.append(f"a pod of {wanted.apart} has it")
        if wanted.rules and self.reserved.holds(row, card, wanted.rules):
            found.append("a pod of the same rule has it for itself")
        if not found and self._try(row, card, memory, tried) is None:
            cut = tried.cuts.get(card) or self._cut(row, card)
            found.append(slices.against(memory, cut, self._ways(row, card)))
        return found

    def _in_order(self, tried: CardRow, first: int) -> list[int]:
        """The cards, those first that the policy likes best; without one from the last to the first. `first`: the one
        that comes before all, -1 for none.
        """
        order = self._by_policy(tried)
        return order if first < 0 else [first, *(card for card in order if card != first)]

    def _by_policy(self, tried: CardRow) -> list[int]:
        cards = range(len(tried.sharers))
        if self._policy == BINPACK:
            return sorted(cards, key=lambda card: -tried.memory[card])
        if self._policy == SPREAD:
            return sorted(cards, key=lambda card: tried.sharers[card])
        return list(reversed(cards))

    def _take(self, row: int, card: int, name: str, tried: CardRow) -> None:
        """The slice is nobody else's."""
        place = slices.named(name)
        if place is not None:
            cut = tried.cuts.setdefault(card, self._cut(row, card).copy())
            slices.take(cut, *place, self._ways(row, card))

    def _try(self, row: int, card: int, memory: int, tried: CardRow) -> tuple[str, int] | None:
        """(name, MiB) of what a pod would get of a card."""
        uuid = self.cards.cards[row][card].uuid
        if not self._sliced[row]:
            return uuid, memory
        factor = self._settings.factor
        cut = tried.cuts.get(card) or self._cut(row, card)
        found = slices.find(uuid, memory * factor if factor > 1 else memory, cut, self._ways(row, card))
        return None if found is None else (found[0], self._scaled(found[1]))

    def _liking(self, memory: int, card: int, tried: CardRow) -> float:
        if self._policy == BINPACK:
            return 100.0 * (float(tried.memory[card]) / float(memory)) if memory else 0.0
        return 100.0 if self._policy == SPREAD and tried.sharers[card] == 0 else 0.0

    def _likes(self, annotations: Mapping[str, str]) -> list[bool]:
        """Whether cards of each type will do."""
        said = tuple(annotations.get(name) for name in READ[:2])
        found = self._liked.get(said)
        if found is None:
            found = self._liked[said] = [likes(annotations, kind) for kind in self.cards.types]
        return found
