"""Sets of completion indexes, as a Job's status writes them: `0,3-5,9`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pumice.core.objects.metadata import Object, text_map
from pumice.core.whole_numbers import whole_number

INDEX: Final = "batch.kubernetes.io/job-completion-index"


def written(indexes: Iterable[int]) -> str:
    """In order; two neighbours are written apart, three or more as a range."""
    parts: list[str] = []
    run: list[int] = []
    for index in [*sorted(set(indexes)), None]:
        if run and (index is None or index != run[-1] + 1):
            parts += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(each) for each in run]
            run = []
        if index is not None:
            run.append(index)
    return ",".join(parts)


def read(text: object, below: int) -> set[int]:
    """The indexes of a text, those below a number; what makes no sense is passed over."""
    found: set[int] = set()
    for part in text.split(",") if isinstance(text, str) else ():
        first, _, last = part.partition("-")
        low, high = whole_number(first), whole_number(last or first)
        if low is not None and high is not None:
            found.update(range(low, min(high + 1, below)))
    return found


def index_of(pod: Object) -> int | None:
    """The index that a pod has."""
    return whole_number(text_map(pod["metadata"].get("annotations")).get(INDEX, ""))
