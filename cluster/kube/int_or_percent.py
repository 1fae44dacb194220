"""Numbers that may be given in per cent (source: Kubernetes' `intstr.GetScaledValueFromIntOrPercent`)."""

from __future__ import annotations

from pumice.core.texts import whole_number


def scaled_value(amount: object, whole: int, *, up: bool = True) -> int:
    """Return a number as it is, a percentage of the whole rounded up or down, and 0 for all else."""
    if isinstance(amount, int):
        return amount
    per_cent = (whole_number(amount.removesuffix("%")) or 0) if isinstance(amount, str) else 0
    return -(-whole * per_cent // 100) if up else whole * per_cent // 100
