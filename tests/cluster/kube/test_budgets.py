"""What a PodDisruptionBudget lets go: the arithmetic."""

from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.kube.budgets import Scale, budget_status, scaled_value
from pumice.core.objects.metadata import Object
from tests.actors.cluster import START
from tests.kit.budgets import READY, budget


def test_who_has_a_controller_that_cannot_be_scaled_is_not_counted() -> None:
    owned = {"metadata": {"name": "p", "ownerReferences": [{"uid": "u", "controller": True}]}, "status": READY}
    status = budget_status(budget(maxUnavailable=1), [owned], lambda _: None, START)
    assert (status["disruptionsAllowed"], status["conditions"][0]["reason"]) == (0, "SyncFailed")


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20), st.booleans())
def test_what_is_allowed_never_breaks_the_budget(healthy: int, sick: int, amount: int, least: bool) -> None:
    pods = [
        {
            "metadata": {"name": f"p{n}", "ownerReferences": [{"uid": "u", "controller": True}]},
            "status": READY if n < healthy else {},
        }
        for n in range(healthy + sick)
    ]
    scale = Scale("u", len(pods))
    spec: Object = {"minAvailable": amount} if least else {"maxUnavailable": amount}
    status = budget_status(budget(**spec), pods, lambda _: scale, START)
    wanted = amount if least else max(len(pods) - amount, 0)
    assert status["currentHealthy"] == healthy
    assert status["disruptionsAllowed"] == (max(healthy - wanted, 0) if pods else 0)


@given(st.integers(0, 100), st.integers(0, 1000))
def test_a_share_is_rounded_up(percent: int, whole: int) -> None:
    found = scaled_value(f"{percent}%", whole)
    assert found * 100 >= percent * whole
    assert (found - 1) * 100 < percent * whole
