"""What the server says it is: the Kubernetes release whose behaviour it has."""

from __future__ import annotations

import platform
import sys

from pumice.cluster.kube.release import RELEASE
from pumice.core.objects.metadata import Object


def version() -> Object:
    """/version. `compiler` and `platform` are true; the rest is what clients compare versions with."""
    major, minor, _ = RELEASE.removeprefix("v").split(".")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": minor,
        "gitVersion": RELEASE,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": sys.implementation.name,
        "platform": f"{sys.platform}/{platform.machine()}",
    }
