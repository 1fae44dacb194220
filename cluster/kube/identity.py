"""Who clients are: whoever got in may do everything."""

from __future__ import annotations

from typing import Final

USER: Final = "pumice:admin"
GROUPS: Final = ("system:masters", "system:authenticated")
