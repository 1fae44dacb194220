"""Another configuration while the system runs: in a file that changes while nothing else does, or by an offer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from pumice.actors.runtime.clock import VirtualClock
from pumice.core.messages.commands import OfferConfig
from pumice.core.messages.replies import Done
from tests.actors.rig import QUICK, idle, placed, started, three_nodes
from tests.kit.jobs import gang

CONFIG = "actions: enqueue{}\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n"


@pytest.mark.trio
async def test_who_could_not_be_placed_is_looked_at_again_under_a_new_configuration(
    tmp_path: Path, autojump_clock: object
) -> None:
    path = tmp_path / "scheduler.conf"
    path.write_text(CONFIG.format(""))
    async with started(settings=replace(QUICK, config_path=path), clock=VirtualClock()) as system:
        await system.submit([*three_nodes(), *gang("g", pods=2, duration="0")])
        await idle(system)
        assert placed(system) == {}
        path.write_text(CONFIG.format(", allocate"))
        await anyio.sleep(2)
        await idle(system)
        assert len(placed(system)) == 2


@pytest.mark.trio
@pytest.mark.parametrize("then", [CONFIG.format(""), CONFIG.format(", alocate")])
async def test_a_file_that_stays_as_it_is_or_cannot_be_used_is_no_reason_for_a_cycle(
    then: str, tmp_path: Path, autojump_clock: object
) -> None:
    path = tmp_path / "scheduler.conf"
    path.write_text(CONFIG.format(""))
    async with started(settings=replace(QUICK, config_path=path), clock=VirtualClock()) as system:
        await idle(system)
        before = system.memory.cycle
        path.write_text(then)
        await anyio.sleep(5)
        assert system.memory.cycle == before


@pytest.mark.anyio
async def test_who_offers_another_configuration_has_an_answer_and_the_next_cycle_is_decided_by_it() -> None:
    async with started(settings=replace(QUICK, config_text=CONFIG.format(""))) as system:
        await system.submit([*three_nodes(), *gang("g", pods=2, duration="0")])
        await idle(system)
        with anyio.fail_after(5):
            answer = await system.switchboard.mailboxes["session-runner"].ask(
                OfferConfig(CONFIG.format(", allocate"), "somebody")
            )
        assert answer == Done()
        await system.run_cycle()
        await idle(system)
        assert len(placed(system)) == 2
