"""What comes to nothing here: the one table of kinds without a controller, and for whom else a pod waits."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from pumice.core.default_scheduler.profile import NAME as DEFAULT_SCHEDULER
from pumice.core.objects.metadata import Object, section

UNSERVED: Final = ("CertificateSigningRequest", "HorizontalPodAutoscaler")
"""Kinds (as they are stored) that become pods somewhere, or more of them, or a certificate, and nothing here. A
controller that comes takes its kinds out: a test finds those that are served and stand here.
"""
LEFT: Final = ("CronJob", "Job", "JobFlow")
"""Of Volcano's own kinds, those that become pods, where they are left to somebody else's controllers."""
SCHEDULER: Final = "volcano"
SERVED: Final = (SCHEDULER, DEFAULT_SCHEDULER)
"""The schedulers of a system."""
NO_CONTROLLER: Final = "no controller for it runs here, so nothing comes of it"


def other_scheduler(pod: Object, served: Collection[str] = SERVED) -> str:
    """For whom a pod without a node waits; "" when that is one who is served, or for nobody."""
    spec = section(pod, "spec")
    name: Any = spec.get("schedulerName")
    return name if isinstance(name, str) and name not in served and not spec.get("nodeName") else ""
