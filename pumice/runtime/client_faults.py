# SPDX-License-Identifier: Apache-2.0
"""`--faults` of `pumice run`: which of its profiles are for the system's own actors, and which for clients."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pumice.cluster.faults.profiles import PACKAGED, named_apart, packaged, read_profile_text
from pumice.cluster.faults.rules import AnyRule, FaultProfile
from pumice.config.errors import ConflictError
from pumice.config.load import read_text
from pumice.config.read import ValuePlace
from pumice.config.yaml_tree import Document

OPTION: Final = "--faults"
FILES: Final = (".yaml", ".yml", ".json")
HERE: Final = ValuePlace(Document(OPTION, None))


def split(names: str | None) -> tuple[str, list[str]]:
    """Return the profiles of a storm, joined by "+" again, and the names and files of profiles for clients."""
    parts = [part.strip() for part in (names or "").split("+")]
    ours = [part for part in parts if part not in PACKAGED and not _is_file(part)]
    return "+".join(ours), [part for part in parts if part not in ours]


def _is_file(part: str) -> bool:
    return "/" in part or part.endswith(FILES)


def client_faults(names: str | None, *, served: bool) -> FaultProfile:
    """Return the rules of all profiles for clients, in their order. Raises ConfigError for one that is not valid,
    ConflictError where no client is served, or two of them have different seeds.
    """
    _, parts = split(names)
    if parts and not served:
        raise ConflictError(f"{parts[0]}: faults for clients need clients: add --http HOST:PORT", path=OPTION)
    rules, seeds = list[AnyRule](), set[int]()
    for part in parts:
        profile = read_profile_text(read_text(Path(part)), part) if _is_file(part) else packaged(part, HERE)
        rules += profile.rules
        if profile.seed is not None:
            seeds.add(profile.seed)
    if len(seeds) > 1:
        raise ConflictError(f"two seeds: {', '.join(map(str, sorted(seeds)))}", path=OPTION)
    return FaultProfile(seed=next(iter(seeds), None), rules=named_apart(HERE.at("rules"), rules))
