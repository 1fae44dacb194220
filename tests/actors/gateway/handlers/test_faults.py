"""The faults in force, over HTTP."""

from __future__ import annotations

import pytest

from pumice.cluster.faults.profiles import read_profile_text
from tests.actors.gateway.rig import PODS, pod_of, serving

pytestmark = pytest.mark.anyio

FAULTS = "/apis/pumice.dev/v1/faults"
ONCE = {"fault": "refuse", "verb": "create", "kind": "Pod", "times": 1, "rule": "once"}


async def test_a_profile_is_replaced_counted_and_taken_away() -> None:
    async with serving(faults=read_profile_text("include: [stale]", "f")) as web:
        assert (await web.get(FAULTS))["rules"][0]["rule"] == "stale.stale-1"
        told = await web.send("POST", FAULTS, {"seed": 9, "rules": [ONCE]})
        assert (told["kind"], told["seed"], told["struck"]) == ("FaultProfile", 9, {})
        assert [each["rule"] for each in told["rules"]] == ["once"]
        await web.send("POST", PODS, pod_of("p"), 503)
        assert (await web.get(FAULTS))["struck"] == {"once": 1}
        assert (await web.send("POST", FAULTS, {"rules": [ONCE]}))["struck"] == {}
        assert (await web.send("DELETE", FAULTS))["rules"] == []
        await web.send("POST", PODS, pod_of("p"), 201)


async def test_a_profile_may_be_yaml_and_include_others() -> None:
    async with serving() as web:
        text, media = b"include: [rough]\nseed: 3", {"content-type": "application/yaml"}
        told = (await web.http.post(FAULTS, content=text, headers=media)).json()
        assert (told["seed"], len(told["rules"])) == (3, 11)
        assert (await web.send("POST", FAULTS, {"rules": told["rules"]}))["rules"] == told["rules"]


async def test_a_mistake_changes_nothing() -> None:
    async with serving() as web:
        await web.send("POST", FAULTS, {"rules": [ONCE]})
        wrong = await web.send("POST", FAULTS, {"rules": [{"fault": "refus"}]}, 400)
        assert wrong["message"] == "rules[0].fault: unknown fault 'refus', did you mean 'refuse'?"
        assert (await web.send("POST", FAULTS, [], 400))["message"] == "expected a mapping, was a list"
        assert (await web.send("PUT", FAULTS, {}, 405))["reason"] == "MethodNotAllowed"
        assert (await web.send("POST", f"{FAULTS}/x", {}, 404))["reason"] == "NotFound"
        assert [each["rule"] for each in (await web.get(FAULTS))["rules"]] == ["once"]


async def test_faults_never_strike_what_puts_them_in_force() -> None:
    async with serving() as web:
        await web.send("POST", FAULTS, {"rules": [{"fault": "refuse", "subresource": "*"}]})
        assert (await web.send("DELETE", FAULTS))["rules"] == []
