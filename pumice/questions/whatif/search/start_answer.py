"""What a search has found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StartAnswer:
    """`code`: Nodes, Capability, Priority, FewerJobs or Moves. `amount` of it (of Capability: so many resources are
    raised) lets the job start after `starts_s`, by `changes`. `least`: everything smaller was tried and does not do;
    else it is the best that was found. `bound`: with less it cannot be. `of`: nodes like which, which queue, which jobs
    or pods. `tried`: how many futures.
    """

    code: str
    amount: int
    of: tuple[str, ...]
    changes: tuple[str, ...]
    starts_s: float
    least: bool
    tried: int
    bound: int = 1
