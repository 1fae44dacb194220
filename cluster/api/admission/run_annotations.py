"""How a pod runs here, said in annotations of the pod, its template or its Job: a slip is refused, not passed over."""

from __future__ import annotations

from typing import Final

from pumice.cluster.api.refusals import Cause, invalid_value
from pumice.config.durations import duration_s
from pumice.core.whole_numbers import whole_number

DURATIONS: Final = ("pumice.dev/duration", "pumice.dev/termination")
EXIT_CODE: Final = "pumice.dev/exit-code"
_MOST_EXIT_CODE: Final = 255


def run_problems(annotations: dict[str, str], path: str) -> list[Cause]:
    """What is wrong with these annotations; `path` is that of the metadata section they stand in."""
    if not annotations:
        return []
    found: list[Cause] = []
    for name in DURATIONS:
        if name in annotations and ((seconds := duration_s(annotations[name])) is None or seconds < 0):
            why = "expected a duration of at least 0, such as 90s, 1h30m or 0"
            found.append(invalid_value(f"{path}.annotations[{name}]", annotations[name], why))
    code = annotations.get(EXIT_CODE)
    number = 0 if code is None else whole_number(code)
    if number is None or number > _MOST_EXIT_CODE:
        why = f"expected a number from 0 to {_MOST_EXIT_CODE}"
        found.append(invalid_value(f"{path}.annotations[{EXIT_CODE}]", code, why))
    return found
