"""Names that Kubernetes takes and refuses, and names that Pumice makes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.api.names import (
    generated_name,
    label_problem,
    label_value_problem,
    name_problem,
    qualified_name_problem,
    subdomain_problem,
    uid_of,
)


@pytest.mark.parametrize("name", ["a", "a-b", "0", "a" * 63])
def test_dns_labels(name: str) -> None:
    assert label_problem(name) is None


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a.b", "a_b", "ä", "a" * 64, "a\n"])
def test_no_dns_labels(name: str) -> None:
    assert label_problem(name)


@pytest.mark.parametrize("name", ["a.b-c.d", "a" * 253])
def test_subdomains(name: str) -> None:
    assert subdomain_problem(name) is None


@pytest.mark.parametrize("name", ["", ".a", "a..b", "a.", "A.b", "a" * 254])
def test_no_subdomains(name: str) -> None:
    assert subdomain_problem(name)


@pytest.mark.parametrize("name", ["a", "A_b.c", "volcano.sh/task-spec", "nvidia.com/gpu"])
def test_qualified_names(name: str) -> None:
    assert qualified_name_problem(name) is None


@pytest.mark.parametrize("name", ["", "/a", "a/", "a/b/c", "-a", "a" * 64, "A.com/b"])
def test_no_qualified_names(name: str) -> None:
    assert qualified_name_problem(name)


@pytest.mark.parametrize(
    ("value", "good"), [("", True), ("a.b_c", True), ("a b", False), ("-", False), ("x" * 64, False)]
)
def test_label_values(value: str, good: bool) -> None:
    assert (label_value_problem(value) is None) == good


@given(st.integers(0, 10**6), st.integers(0, 10**9))
def test_uids_follow_from_seed_and_revision(seed: int, revision: int) -> None:
    uid = uid_of(seed, revision)
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", uid)
    assert uid == uid_of(seed, revision)
    assert uid != uid_of(seed, revision + 1)
    assert uid != uid_of(seed + 1, revision)


@given(st.from_regex(r"[a-z][a-z0-9]{0,70}-", fullmatch=True), st.integers(0, 10**9), st.integers(0, 9))
def test_generated_names_are_labels(base: str, revision: int, attempt: int) -> None:
    name = generated_name(base, 0, revision, attempt)
    assert label_problem(name) is None
    assert name.startswith(base[:58])
    assert name != generated_name(base, 0, revision, attempt + 1)


@pytest.mark.parametrize(
    ("kind", "name", "good"),
    [
        ("ClusterRole", "system:widget-reader", True),
        ("RoleBinding", "widget:LeaderElection", True),
        ("Role", "a/b", False),
        ("ClusterRoleBinding", "..", False),
        ("ClusterRoleBinding", "50%", False),
        ("CertificateSigningRequest", "csr:Node_1", True),
        ("APIService", "v1.", True),
        ("ConfigMap", "a:b", False),
        ("ServiceAccount", "Widget", False),
        ("PodGroup", "a.b", True),
        ("Lease", "a:b", False),
    ],
)
def test_a_name_is_judged_by_the_rule_of_its_kind(kind: str, name: str, good: bool) -> None:
    assert (name_problem(kind, name) is None) is good
