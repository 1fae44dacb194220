"""Arguments of actions from one session to the next.

Volcano's actions live as long as its process and overwrite only what a configuration names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.config.arguments import Arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.session.session import Session

FORGETS = "action-arguments-follow"
ASKS_AGAIN = "refused-nodes-asked-again"


def argument_of(session: Session, read: Callable[[Arguments, str, Any], Any], action: str, key: str, other: Any) -> Any:
    """The argument, else what it was the last time it was given (fix action-arguments-follow: else `other`)."""
    config = session.config
    kept = {} if FORGETS in config.pumice.fix else session.carry.actions.setdefault(action, {})
    kept[key] = read(Arguments(action, config.action_arguments(action)), key, kept.get(key, other))
    return kept[key]


def caches_errors(session: Session, action: str) -> bool:
    """`predicateErrorCacheEnable` of the action (true): a node that was refused to a pod of a role is refused to all.

    What a filter says may change with every pod that is placed, so a gang that has to spread gets nowhere (fix
    refused-nodes-asked-again: whatever the argument says, each pod is tried everywhere).
    """
    return session.action_flag(action, "predicateErrorCacheEnable", default=True) and (
        ASKS_AGAIN not in session.config.pumice.fix
    )
