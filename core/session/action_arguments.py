# SPDX-License-Identifier: Apache-2.0
"""Arguments of actions from one session to the next.

Volcano's actions live as long as its process and overwrite only what a configuration names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pumice.config.known import CACHES_ERRORS

if TYPE_CHECKING:
    from pumice.config.arguments import Argument
    from pumice.core.session.session import Session

T = TypeVar("T")
FORGETS = "action-arguments-follow"
ASKS_AGAIN = "refused-nodes-asked-again"


def argument_of(session: Session, action: str, argument: Argument[T]) -> T:
    """Return the argument, else its last given value (fix action-arguments-follow: else its default)."""
    config = session.config
    kept = {} if FORGETS in config.pumice.fix else session.carry.actions.setdefault(action, {})
    before: T = kept.get(argument.name, argument.default)
    found = kept[argument.name] = argument.kept(config.action_arguments(action), before)
    return found


def caches_errors(session: Session, action: str) -> bool:
    """Return `predicateErrorCacheEnable` of the action (default true): a node that was refused to a pod of a role is
    refused to all.

    What a filter says may change with every pod that is placed, so a gang that has to spread gets nowhere (fix
    refused-nodes-asked-again: whatever the argument says, each pod is tried everywhere).
    """
    return argument_of(session, action, CACHES_ERRORS) and ASKS_AGAIN not in session.config.pumice.fix
