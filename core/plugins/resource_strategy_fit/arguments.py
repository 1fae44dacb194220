"""The arguments. Source: Volcano `plugins/resource-strategy-fit` (`calculateWeight`, `calculateSraWeight`,
`calculateProportionalResources`).

Keys of nested records may be written in any letter case, as there. A value of the wrong type ends Volcano's process;
here the default stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST, LEAST = "MostAllocated", "LeastAllocated"
DEFAULT_WEIGHT: Final = 10


class Strategy(NamedTuple):
    """How one resource counts."""

    kind: str
    weight: int


class IdleShare(NamedTuple):
    """cpu (milli-cores per thousandth) and memory (millions of bytes per thousandth) kept per idle scarce resource."""

    cpu: float
    memory: float


@dataclass(frozen=True, slots=True)
class Sra:
    """Scarce resources avoidance; `total` is the sum of the weights as listed. `weight` 0: off."""

    weight: int
    weights: dict[str, int]
    total: int


DEFAULT_STRATEGIES: Final = {"cpu": Strategy(LEAST, 1), "memory": Strategy(LEAST, 1)}
NO_SRA: Final = Sra(0, {}, 0)


def record(value: object) -> dict[str, Any]:
    """A nested record with its keys in lower case; of anything else an empty one."""
    if not isinstance(value, dict):
        return {}
    items = cast("dict[str, Any]", value)
    return {str(key).lower(): item for key, item in items.items()}


def whole(value: object, default: int) -> int:
    """A number as Go's mapstructure makes an int of it: a fraction is cut off."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else default


def names_in(text: object) -> list[str]:
    """Names with commas between."""
    listed = text.split(",") if isinstance(text, str) else []
    return [name.strip() for name in listed if name.strip()]


def fit_weight(arguments: Mapping[str, Any]) -> int:
    """`resourceStrategyFitWeight`; 10 when absent or negative, 0 leaves the score out."""
    value = arguments.get("resourceStrategyFitWeight", DEFAULT_WEIGHT)
    weight = 0 if value is None else whole(value, DEFAULT_WEIGHT)
    return weight if weight >= 0 else DEFAULT_WEIGHT


def strategies(arguments: Mapping[str, Any]) -> dict[str, Strategy]:
    """`resources`: name or prefix with a trailing asterisk -> strategy. A pattern of any other shape is left out."""
    value = arguments.get("resources")
    if not isinstance(value, dict) or not value:
        return dict(DEFAULT_STRATEGIES)
    found = {str(name): record(item) for name, item in cast("dict[str, Any]", value).items()}
    return {name: _strategy(item) for name, item in found.items() if _is_pattern(name)}


def _is_pattern(name: str) -> bool:
    return "*" not in name or (name.endswith("*") and name.count("*") == 1 and name != "*")


def _strategy(item: dict[str, Any]) -> Strategy:
    kind, weight = item.get("type"), whole(item.get("weight"), 0)
    return Strategy(MOST if kind == MOST else LEAST, weight if weight > 0 else 1)


def strategy_for(name: str, configured: dict[str, Strategy]) -> Strategy | None:
    """The resource's own entry, else the one of the longest prefix, else None."""
    if name in configured:
        return configured[name]
    prefixes = [key for key in configured if key.endswith("*") and name.startswith(key[:-1])]
    return configured[max(prefixes, key=len)] if prefixes else None


def sra(arguments: Mapping[str, Any]) -> Sra:
    """`sra`: enable, resources, weight (0 when absent), resourceWeight by name (1 when absent or negative)."""
    given = record(arguments.get("sra"))
    if given.get("enable") is not True:
        return NO_SRA
    own: dict[str, Any] = given.get("resourceweight") or {}
    listed = [(name, whole(own.get(name), 1)) for name in names_in(given.get("resources"))]
    weights = [(name, weight if weight >= 0 else 1) for name, weight in listed]
    return Sra(whole(given.get("weight"), 0), dict(weights), sum(weight for _, weight in weights))


def proportional(arguments: Mapping[str, Any]) -> dict[str, IdleShare] | None:
    """`proportional`: enable, resources, resourceProportion "<name>.cpu" and "<name>.memory" (1 when absent or
    negative). By name in name order; None when it is off.
    """
    given = record(arguments.get("proportional"))
    if given.get("enable") is not True:
        return None
    rates: dict[str, Any] = given.get("resourceproportion") or {}
    names = sorted(set(names_in(given.get("resources"))))
    return {name: IdleShare(_rate(rates.get(f"{name}.cpu")), _rate(rates.get(f"{name}.memory"))) for name in names}


def _rate(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 1.0
    return float(value) if value >= 0 else 1.0
