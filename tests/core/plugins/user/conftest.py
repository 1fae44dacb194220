"""A cycle with a user's plugin in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pumice.config.schema import PluginOption, Tier
from pumice.core.cycle import run_cycle
from pumice.core.objects.metadata import parse_time
from pumice.core.plugins import PLUGINS
from pumice.core.plugins.user import guarded
from pumice.core.session.carry import Carry, CycleClock, SessionOptions
from pumice.core.session.trail.trail import NULL_TRAIL, NullTrail
from tests.core.plugins.world import NOW, configuration, view_of
from tests.kit import gang, node, queue

if TYPE_CHECKING:
    from pumice.core.messages.decisions import CycleResult, FailedAnswers


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def use(told: list[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., CycleResult]:
    """Run a cycle over two nodes, a gang of three and one of one, with a plugin that registers what is given."""

    def run(
        builder: Any,
        carry: Carry | None = None,
        failed: tuple[FailedAnswers, ...] = (),
        trail: NullTrail = NULL_TRAIL,
        **arguments: Any,
    ) -> CycleResult:
        monkeypatch.setitem(PLUGINS, "mine", guarded("mine", builder, lambda _, sentence: told.append(sentence)))
        first, second = configuration(["gang"], ["predicates"]).tiers
        mine = PluginOption("mine", second.plugins[0].enabled, arguments)
        config = msgspec.structs.replace(configuration(), tiers=(first, Tier((*second.plugins, mine))))
        jobs = [*gang("j", pods=3), *gang("k", pods=1)]
        jobs[0]["spec"]["minResources"] = jobs[4]["spec"]["minResources"] = {"cpu": "1"}
        objects = [node("n0"), node("n1"), queue("default"), *jobs]
        clock = CycleClock(1, parse_time(NOW))
        options = SessionOptions(failed=failed)
        snapshot = view_of(objects).snapshot()
        return run_cycle(snapshot, config, clock, carry or Carry(), options, report=True, trail=trail)

    return run
