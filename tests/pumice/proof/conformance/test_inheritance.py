"""Arguments of actions outlive the configuration that set them: what a recording process had run before may matter."""

from __future__ import annotations

from typing import Final

import pytest

from pumice.core.configuration import parse_scheduler_config
from pumice.proof.conformance.case import find_suites, inherited
from pumice.proof.conformance.runner import run_suites
from tests.kit import source

CASES: Final = source.SHARED / "conformance" / "oracle"
PLAIN: Final = 'actions: "allocate, preempt"\ntiers:\n- plugins:\n  - name: gang\n'
TOPOLOGY_AWARE: Final = f"""{PLAIN}
configurations:
- name: preempt
  arguments:
    enableTopologyAwarePreemption: true
    minCandidateNodesPercentage: 100
"""


def test_what_a_configuration_sets_stays() -> None:
    kept = inherited(parse_scheduler_config(TOPOLOGY_AWARE, source="before"))["preempt"]
    assert kept["enableTopologyAwarePreemption"] is True
    assert kept["minCandidateNodesPercentage"] == 100


def test_what_it_does_not_name_is_the_default() -> None:
    kept = inherited(parse_scheduler_config(PLAIN, source="before"))["preempt"]
    assert kept["enableTopologyAwarePreemption"] is False


@pytest.mark.skipif(not CASES.is_dir(), reason="the conformance cases are not beside the repository")
def test_what_ran_before_changes_what_is_decided() -> None:
    """The cases were recorded by a process in which nobody had asked for topology-aware preemption before."""
    files = find_suites([CASES / "preempt.json"])
    kept = inherited(parse_scheduler_config(TOPOLOGY_AWARE, source="before"))
    assert sum(verdict.passed for verdict in run_suites(files)) == 14
    assert sum(verdict.passed for verdict in run_suites(files, kept=kept)) < 14
