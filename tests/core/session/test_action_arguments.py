"""Arguments of actions stay when the configuration names them no more, unless mended."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pumice.config.arguments import INTEGER, SWITCH, Argument
from pumice.core.session.action_arguments import argument_of
from pumice.core.session.carry import Carry
from pumice.core.session.session import Session
from tests.core.plugins.world import configuration, open_world
from tests.kit import node

COUNT = Argument("count", INTEGER, 3, "")
FLAG = Argument("flag", SWITCH, True, "")


def opened(arguments: dict[str, Any], carry: Carry, fix: tuple[str, ...]) -> Session:
    config = configuration(["gang"], fix=fix)
    config = msgspec.structs.replace(config, configurations={"preempt": arguments} if arguments else {})
    return open_world(config, node("n"), carry=carry)


@pytest.mark.parametrize(("fix", "later"), [((), (7, False)), (("action-arguments-follow",), (3, True))])
def test_an_argument_that_was_taken_out(fix: tuple[str, ...], later: tuple[int, bool]) -> None:
    carry = Carry()
    for arguments, expected in (({}, (3, True)), ({"count": 7, "flag": False}, (7, False)), ({}, later)):
        session = opened(arguments, carry, fix)
        asked = (
            argument_of(session, "preempt", COUNT),
            argument_of(session, "preempt", FLAG),
        )
        assert asked == expected, arguments
        carry = Carry.from_dict(session.carry.to_dict())


def test_actions_do_not_share_arguments() -> None:
    session = opened({"count": 7}, Carry(), ())
    assert argument_of(session, "reclaim", COUNT) == 3
