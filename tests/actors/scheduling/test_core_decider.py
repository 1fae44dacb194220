"""What the real core leaves to be told of the newest session."""

from __future__ import annotations

from pumice.actors.scheduling.core_decider import core_decider
from pumice.core.cycle import cards_later, shares_later, tables_later
from pumice.core.messages.queue_tables import CardTable, JobShares
from tests.core.plugins.world import configuration, open_world
from tests.kit import gang, node, queue

CONFIG = configuration(["gang"], ["drf", "predicates", "proportion", "deviceshare"])


def test_nothing_is_told_before_the_first_session() -> None:
    decider = core_decider()
    assert decider.queue_tables() == ()
    assert decider.card_table() == CardTable()
    assert decider.job_shares() == JobShares()


def test_what_the_newest_session_knew_is_told_once_it_is_closed() -> None:
    decider = core_decider()
    for pods in (1, 2):
        runs = gang("g", queue="q", pods=pods, nodes=["n"] * pods, phase="Running")
        session = open_world(CONFIG, node("n"), queue("q"), runs)
        known = tables_later(session)(), cards_later(session)(), shares_later(session)()
        decider.close_session(session)
        assert (decider.queue_tables(), decider.card_table(), decider.job_shares()) == known
        assert known[0] != ()
        assert known[2] != JobShares()
