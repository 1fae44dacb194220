"""The rights in the example are those that a mirror needs: no more, and none to write."""

from pathlib import Path
from typing import Any

import yaml

from pumice.actors.real_clusters.mirror.intake import resources
from pumice.config.settings import CHARTS
from tests.kit import source

EXAMPLE: Path = source.ROOT / "examples" / "mirror-role.yaml"


def rules(kind: str) -> list[dict[str, Any]]:
    return [rule for each in yaml.safe_load_all(EXAMPLE.read_text()) if each["kind"] == kind for rule in each["rules"]]


def test_the_role_names_what_is_followed_and_nothing_else() -> None:
    allowed = {
        (group, name) for rule in rules("ClusterRole") for group in rule["apiGroups"] for name in rule["resources"]
    }
    asked = {path_of(each.path) for each in resources(CHARTS) if not each.only}
    assert allowed == asked


def test_nobody_may_write() -> None:
    verbs = {verb for kind in ("ClusterRole", "Role") for rule in rules(kind) for verb in rule["verbs"]}
    assert verbs == {"get", "list", "watch"}


def test_of_config_maps_one_may_be_read() -> None:
    (rule,) = rules("Role")
    assert (rule["resources"], rule["resourceNames"]) == (["configmaps"], [CHARTS.name])


def path_of(path: str) -> tuple[str, str]:
    """Group and plural."""
    parts = path.strip("/").split("/")
    return ("" if parts[0] == "api" else parts[1]), parts[-1]
