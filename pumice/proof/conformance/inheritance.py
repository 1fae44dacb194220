"""What a case may inherit from the process that recorded it.

Volcano's actions are singletons of their process: an argument that one configuration sets stays in force under later
ones that do not name it. A recorded case says nothing of what its process had run before, so this is told apart.
"""

from __future__ import annotations

from typing import Any

from pumice.config.schema import SchedulerConfig
from pumice.questions.oneshot.cycles import Setup, run_cycles

ActionArguments = dict[str, dict[str, Any]]
"""Action -> argument -> value."""


def inherited(config: SchedulerConfig) -> ActionArguments:
    """What actions hold after a cycle under this configuration, in a cluster without anything."""
    (cycle,) = run_cycles(Setup(objects=(), config=config, now=0.0), 1)
    carried: ActionArguments = cycle.result.carry["actions"]
    return carried
