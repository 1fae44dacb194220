"""The resource model: Volcano's own answers where they are at hand, and the rules that matter most spelled out."""

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.errors import QuantityError, ResourceAssertionError
from pumice.core.resources import (
    INFINITY,
    LARGEST,
    MIN_RESOURCE,
    ZERO,
    Resource,
    exceeded_part,
    higher,
    intersection,
    is_scalar_resource_name,
    share,
)
from pumice.proof.conformance.runner import OPERATIONS, CaseResult, run_resource_cases
from tests.kit import source

CASES = source.SHARED / "conformance" / "resources.json"
GPU = "nvidia.com/gpu"

amounts = st.sampled_from([0.0, 0.05, 0.1, 0.15, 1.0, 99.95, 100.0, 100.05, 100.1, 4000.0, 1048576.0, -0.1, -5.0])
scalars = st.none() | st.dictionaries(st.sampled_from(["pods", GPU, "hugepages-2Mi"]), amounts)
resources = st.builds(Resource, amounts, amounts, scalars)


def cases() -> list[CaseResult]:
    if not CASES.exists():
        return []
    return run_resource_cases(json.loads(CASES.read_text("utf-8")))


@pytest.mark.skipif(not CASES.exists(), reason="no shared/conformance/resources.json beside the repository")
def test_conformance() -> None:
    results = cases()
    assert len(results) >= 202
    assert [result for result in results if not result.passed] == []


def test_a_wrong_expectation_is_seen() -> None:
    row = {"a": {"cpu": 1, "memory": 0}, "b": {"cpu": 2, "memory": 0}, "req": {"cpu": 0, "memory": 0}}
    good, bad = run_resource_cases(
        {
            "quantities": [],
            "operations": [row | {"lessEqual.zero": True}, row | {"lessEqual.zero": 1, "frobnicate": 2}],
        }
    )
    assert good.passed
    assert not bad.passed
    assert bad.diff.startswith("lessEqual.zero: expected 1, was True; frobnicate:")


def test_wrong_quantities_are_seen() -> None:
    good, bad, worse = run_resource_cases(
        {
            "quantities": [
                {"text": "1Gi", "value": 2**30, "resource:memory": {"cpu": 0, "memory": 2**30}},
                {"text": "1Gi", "error": True},
                {"text": "x", "value": 1},
            ]
        }
    )
    assert (good.passed, bad.passed, worse.passed) == (True, False, False)


class TestTolerance:
    def test_a_tenth_is_the_border(self) -> None:
        assert Resource(100.0).less_equal(Resource(99.95), ZERO)
        assert not Resource(0.1).less_equal(Resource(), ZERO)

    def test_nothing_does_not_fit_into_less_than_nothing(self) -> None:
        assert not Resource().less_equal(Resource(-0.1), ZERO)
        assert not Resource(0, 0, {GPU: 0.0}).less_equal(Resource(0, 0, {GPU: -1.0}), ZERO)
        assert Resource().less_equal(Resource(0, 0, {GPU: -1.0}), ZERO)

    def test_less_is_strict_even_for_scalars(self) -> None:
        assert not Resource(1, 1, {GPU: 0.0}).less(Resource(2, 2), ZERO)
        assert Resource(1, 1, {GPU: 0.0}).less(Resource(2, 2, {GPU: 0.1}), ZERO)

    def test_the_filtered_one_is_exact(self) -> None:
        holds, names = Resource(100.05).less_equal_with_dimension_and_resources_name(Resource(100.0), Resource(1.0))
        assert (holds, names) == (False, ["cpu"])

    @given(resources, resources)
    def test_is_what_go_writes(self, left: Resource, right: Resource) -> None:
        def go(mine: float, other: float) -> bool:
            return mine < other or abs(mine - other) < 0.1

        expected = all(go(left.get(name), right.get(name)) for name in ("cpu", "memory", *(left.scalars or {})))
        assert left.less_equal(right, ZERO) is expected
        assert left.less_equal_with_resources_name(right, ZERO)[0] is expected
        assert left.greater_partly(right, ZERO)[0] is not expected


class TestUnset:
    def test_infinity_wants_what_the_other_has(self) -> None:
        assert not Resource(1).less_equal(Resource(2, 0, {GPU: 1.0}), INFINITY)
        assert Resource(1, 0, {GPU: 9.0}).less_equal(Resource(2), INFINITY)
        assert Resource(1).less_equal_with_resources_name(Resource(2, 0, {GPU: 1.0}), INFINITY) == (True, [])

    def test_partly_counts_a_missing_scalar_whatever_its_value(self) -> None:
        assert Resource(9, 9).less_partly(Resource(1, 1, {GPU: 0.0}), ZERO)
        assert not Resource(9, 9).less_partly(Resource(1, 1, {GPU: 5.0}), INFINITY)
        assert Resource(9, 9, {GPU: 5.0}).less_partly(Resource(1, 1), INFINITY)

    def test_diff_marks_infinity_with_minus_one(self) -> None:
        more, fewer = Resource(5).diff(Resource(3, 0, {GPU: 2.0}), INFINITY)
        assert (more.milli_cpu, more.scalars, fewer.scalars) == (2.0, {GPU: -1.0}, {})

    def test_min_dimension(self) -> None:
        assert Resource(5, 5, {GPU: 2.0}).min_dimension_resource(Resource(3, 9), ZERO) == Resource(3, 5, {GPU: 0.0})
        assert Resource(5, 5, {GPU: 2.0}).min_dimension_resource(Resource(3, 9), INFINITY) == Resource(3, 5, {GPU: 2.0})


class TestArithmetic:
    def test_sub_asserts(self) -> None:
        with pytest.raises(
            ResourceAssertionError, match=r"not sufficient to do operation: <cpu 1[.]00, memory 0[.]00> sub"
        ):
            Resource(1).sub(Resource(2))

    def test_sub_within_the_tolerance(self) -> None:
        assert Resource(1).sub(Resource(1.05)).milli_cpu == pytest.approx(-0.05)

    def test_sub_drops_scalars_it_has_no_map_for(self) -> None:
        assert Resource(5).sub_without_assert(Resource(1, 0, {GPU: 3.0})) == Resource(4)
        assert Resource(5, 0, {}).sub_without_assert(Resource(1, 0, {GPU: 3.0})) == Resource(4, 0, {GPU: -3.0})

    @given(resources, resources)
    def test_add_then_sub_leaves_the_map_and_the_value(self, left: Resource, right: Resource) -> None:
        result = left.clone().add(right).sub_without_assert(right)
        assert result.equal(left)
        assert set(result.scalars or {}) == set(left.scalars or {}) | set(right.scalars or {})

    @given(resources, resources)
    def test_operands_are_not_changed(self, left: Resource, right: Resource) -> None:
        before = left.clone(), right.clone()
        left.diff(right, ZERO)
        left.clone().add(right).fit_delta(right).multi(2.0).set_max_resource(right)
        higher(left, right).add(left)
        assert (left, right) == before

    @given(resources, resources)
    def test_exceeded_part_is_never_negative(self, left: Resource, right: Resource) -> None:
        part = exceeded_part(left, right)
        assert min(part.milli_cpu, part.memory, *(part.scalars or {}).values(), 0.0) == 0.0

    def test_sides_that_are_missing(self) -> None:
        left = Resource(1)
        assert exceeded_part(left, None) is left
        assert exceeded_part(None, left) == Resource()
        assert left.less_equal_with_dimension_and_resources_name(None, None) == (False, ["cpu"])
        assert left.greater_partly_with_dimension(None, left) == (True, ["cpu"])

    def test_max(self) -> None:
        left, right = Resource(1, 5, {GPU: 3.0, "pods": -1.0}), Resource(2, 4, {"pods": 1.0})
        assert higher(left, right) == Resource(2, 5, {GPU: 3.0, "pods": 1.0})

    def test_share(self) -> None:
        assert [share(1, 4), share(0, 0), share(2, 0)] == [0.25, 0.0, 1.0]


class TestNames:
    def test_pods_do_not_make_it_full(self) -> None:
        assert Resource(0, 0, {"pods": 9.0}).is_empty()
        assert not Resource(0, 0, {GPU: 0.1}).is_empty()
        assert Resource(0.09, 0, {GPU: 0.09}).is_empty()

    def test_order_is_cpu_memory_then_keys(self) -> None:
        resource = Resource(1, 1, {"pods": 1.0, GPU: 1.0, "b": 0.05})
        assert resource.resource_names() == ["cpu", "memory", GPU, "pods"]
        assert intersection(Resource(1, 0, {GPU: 1.0}), resource) == ["cpu", GPU]
        assert resource.string() == f"cpu 1.00, memory 1.00, b 0.05, {GPU} 1.00, pods 1.00"
        assert str(Resource(LARGEST, 2.0**63)) == "cpu maxFloat, memory maxInt"

    @pytest.mark.parametrize(
        ("name", "scalar"),
        [
            (GPU, True),
            ("hugepages-2Mi", True),
            ("attachable-volumes-csi-x", True),
            ("scheduling.kubernetes.io/foo", True),
            ("cpu", False),
            ("gpu", False),
            ("requests.nvidia.com/gpu", False),
            ("Upper.com/gpu", False),
            ("a/b/c", False),
            ("example.com/-bad", False),
            ("example.com/" + "x" * 64, False),
        ],
    )
    def test_scalar_names(self, name: str, scalar: bool) -> None:
        assert is_scalar_resource_name(name) is scalar


class TestLists:
    def test_from_list(self) -> None:
        resource = Resource.from_list({
            "cpu": "1500m", "memory": "1Gi", "pods": 110, GPU: 2, "ephemeral-storage": "1k",
            "count/pods": "3", "storage": "1Gi", "volcano.sh/vgpu": "1",
        }, ignored={"volcano.sh/vgpu"})  # fmt: skip
        assert resource == Resource(1500.0, 2.0**30, {"pods": 110.0, GPU: 2000.0, "ephemeral-storage": 1000000.0})

    def test_nothing(self) -> None:
        assert Resource.from_list(None) == Resource.from_list({}) == Resource()
        assert Resource.from_list({}).scalars is None

    def test_a_bad_quantity_is_refused(self) -> None:
        with pytest.raises(QuantityError, match="1GiB"):
            Resource.from_list({"memory": "1GiB"})


def test_every_method_of_the_suite_is_there() -> None:
    assert len(OPERATIONS) == 33


def test_a_resource_is_no_key() -> None:
    with pytest.raises(TypeError):
        hash(Resource())


def test_what_counts_as_nothing_is_stated_once() -> None:
    stated = [
        f"{path}:{node.lineno}"
        for path, tree in source.modules("core")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value == MIN_RESOURCE
    ]
    assert [each.partition(":")[0] for each in stated] == ["core/resources/amounts.py"], stated
