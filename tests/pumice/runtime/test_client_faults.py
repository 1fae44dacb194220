"""Which profiles of `--faults` are for clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.config.errors import ConfigError, ConflictError
from pumice.runtime.serving import client_faults, split_faults


@pytest.mark.parametrize(
    ("names", "storm", "clients"),
    [
        (None, "", []),
        ("live", "live", []),
        ("rough", "", ["rough"]),
        ("live+rough + binds+ a/b.yaml+c.json", "live+binds", ["rough", "a/b.yaml", "c.json"]),
        ("rogh", "rogh", []),
    ],
)
def test_names_are_told_apart(names: str | None, storm: str, clients: list[str]) -> None:
    assert split_faults(names) == (storm, clients)


def test_several_profiles_are_one_with_the_seed_of_any(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("seed: 5\nrules:\n- {fault: restart}\n")
    whole = client_faults(f"stale+{mine}", served=True)
    assert (whole.seed, [rule.rule for rule in whole.rules][-2:]) == (5, ["stale.delay-watch-3", "restart-1"])


def test_mistakes_are_told(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine.yaml", tmp_path / "other.yaml"
    mine.write_text("seed: 5\nrules:\n- {fault: restrat}\n")
    with pytest.raises(ConfigError, match=r"mine.yaml:3: rules\[0\].fault: .* did you mean 'restart'"):
        client_faults(str(mine), served=True)
    with pytest.raises(ConfigError, match=r"nowhere.yaml: .*does not exist"):
        client_faults(str(tmp_path / "nowhere.yaml"), served=True)
    with pytest.raises(ConflictError, match="add --http HOST:PORT"):
        client_faults("rough", served=False)
    mine.write_text("seed: 5")
    other.write_text("seed: 6")
    with pytest.raises(ConflictError, match="--faults: two seeds: 5, 6"):
        client_faults(f"{mine}+{other}", served=True)
