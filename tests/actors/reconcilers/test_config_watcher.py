"""The scheduler's configuration in a ConfigMap: followed when it changes, kept when what it says is bad."""

import logging
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import anyio
import pytest

from pumice.actors.gateway.settings import GatewaySettings
from pumice.actors.reconcilers.config_watcher import ConfigMachine
from pumice.actors.scheduling.config_source import ConfigSource
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.config.errors import ConfigError
from pumice.config.settings import CHARTS, ConfigMapName
from pumice.config.unwrap import USUAL_KEY as KEY
from pumice.core.messages.commands import Create, Patch
from pumice.core.messages.events import ConfigLoaded
from pumice.core.messages.replies import Accepted
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack
from pumice.storage.memory import MemoryJournal
from tests.actors.cluster import Cluster
from tests.actors.rig import QUICK, journaled, started

NAMESPACE, NAME, SOURCE = CHARTS.namespace, CHARTS.name, CHARTS.said

GOOD = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n'
OTHER = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: priority\n'
BAD = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: nonsense\n'


def config_map(text: str | None, name: str = NAME, namespace: str = NAMESPACE) -> Object:
    data = {} if text is None else {KEY: text}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def events(cluster: Cluster) -> list[tuple[str, str]]:
    return [(found["type"], found["reason"]) for found in cluster.all("Event")]


# --- the machine


@pytest.fixture
def offered() -> list[str]:
    return []


@pytest.fixture
def cluster(offered: list[str]) -> Cluster:
    def offer(text: str, name: str) -> str:
        assert name == SOURCE
        offered.append(text)
        return "plugin nonsense is unknown" if text == BAD else ""

    return Cluster(ConfigMachine(CHARTS, offer))


def test_what_it_says_is_offered_once(cluster: Cluster, offered: list[str]) -> None:
    cluster.create(config_map(GOOD))
    cluster.settle()
    cluster.patch("ConfigMap", NAME, {"metadata": {"labels": {"a": "b"}}}, NAMESPACE)
    cluster.settle()
    assert offered == [GOOD]
    cluster.patch("ConfigMap", NAME, {"data": {KEY: OTHER}}, NAMESPACE)
    cluster.settle()
    assert offered == [GOOD, OTHER]
    (said,) = cluster.all("Event")
    assert (said["type"], said["reason"], said["count"]) == ("Normal", "ConfigurationLoaded", 2)


def test_other_config_maps_are_none_of_its_business(cluster: Cluster, offered: list[str]) -> None:
    cluster.create(config_map(GOOD, name="other"))
    cluster.create(config_map(GOOD, namespace="default"))
    cluster.settle()
    assert offered == []


@pytest.mark.parametrize(("text", "word"), [(BAD, "nonsense"), (None, KEY)])
def test_what_is_bad_is_said_on_the_config_map(
    cluster: Cluster, text: str | None, word: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.create(config_map(text))
    cluster.settle()
    assert [each.levelno for each in caplog.records] == ([logging.ERROR] if text is None else [])  # the runner logs BAD
    (found,) = cluster.all("Event")
    assert (found["type"], found["reason"]) == ("Warning", "InvalidConfiguration")
    assert word in found["message"]
    assert found["involvedObject"]["name"] == NAME


def test_a_config_map_that_goes_changes_nothing(
    cluster: Cluster, offered: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    cluster.create(config_map(GOOD))
    cluster.settle()
    cluster.delete("ConfigMap", NAME, NAMESPACE)
    cluster.settle()
    assert offered == [GOOD]
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert f"{SOURCE} was removed: the scheduler keeps" in record.getMessage()
    cluster.create(config_map(GOOD))
    cluster.settle()
    assert offered == [GOOD, GOOD]


# --- the source


def test_an_offer_is_taken_at_the_next_look() -> None:
    source = ConfigSource("", offers=True)
    assert source.can_change
    assert source.look() is None
    assert source.check(GOOD, "somewhere") == ""
    source.offer(GOOD, "somewhere")
    loaded = source.look()
    assert loaded is not None
    assert (loaded.text, loaded.source, list(loaded.config.actions)) == (GOOD, "somewhere", ["enqueue", "allocate"])
    assert source.look() is None


def test_a_bad_offer_is_refused_once_and_the_old_one_kept() -> None:
    source = ConfigSource(GOOD, offers=True)
    assert "nonsense" in source.check(BAD, "somewhere")
    source.offer(BAD, "somewhere")
    with pytest.raises(ConfigError, match="nonsense"):
        source.look()
    assert source.look() is None
    assert source.loaded.text == GOOD


# --- the whole


@pytest.fixture
def settings() -> Iterator[SystemSettings]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield replace(QUICK, gateway=GatewaySettings(listener))


async def following(system: System, text: str) -> None:
    with anyio.fail_after(20):
        while system.source.loaded.text != text:
            await system.run_cycle()


@pytest.mark.anyio
async def test_the_scheduler_follows_it_and_a_restart_begins_with_it(
    settings: SystemSettings, caplog: pytest.LogCaptureFixture
) -> None:
    journal = MemoryJournal()
    async with started(journal, settings=settings) as system:
        assert isinstance(await system.api.ask(Create(pack(config_map(GOOD)))), Accepted)
        await following(system, GOOD)
        caplog.set_level(logging.ERROR)
        await system.api.ask(Patch("ConfigMap", NAMESPACE, NAME, pack({"data": {KEY: BAD}})))
        with anyio.fail_after(20):
            while "nonsense" not in caplog.text:
                await system.run_cycle()
        assert system.source.loaded.text == GOOD
        await system.api.ask(Patch("ConfigMap", NAMESPACE, NAME, pack({"data": {KEY: OTHER}})))
        await following(system, OTHER)
    told = await journaled(journal, "config", ConfigLoaded)
    assert [(each.text, bool(each.error)) for each in told[1:]] == [(GOOD, False), ("", True), (OTHER, False)]
    again = System(settings, journal, system.context.clock)
    async with again.running():
        assert again.source.loaded.text == OTHER
        assert again.source.loaded.source == SOURCE


@pytest.mark.parametrize(
    "change", [{"config_text": GOOD}, {"scheduler": False}, {"gateway": None}], ids=["a-text", "no-scheduler", "alone"]
)
def test_who_follows_no_cluster_has_no_watcher(settings: SystemSettings, change: dict[str, Any]) -> None:
    assert settings.followed == CHARTS
    assert replace(settings, **change).followed is None


def test_the_one_that_was_named_is_followed_whatever_its_key(settings: SystemSettings, offered: list[str]) -> None:
    named = ConfigMapName("kube-system", "mine")
    assert replace(settings, config_map=named, gateway=None).followed == named
    assert replace(settings, config_map=named, scheduler=False).followed is None

    def offer(text: str, name: str) -> str:
        offered.append(f"{name}: {text}")
        return ""

    cluster = Cluster(ConfigMachine(named, offer))
    cluster.create(config_map(GOOD))
    mine = config_map(None, "mine", "kube-system")
    cluster.create(mine | {"data": {"volcano-scheduler-ci.conf": OTHER, "README": "why"}})
    cluster.settle()
    assert offered == [f"configmap kube-system/mine: {OTHER}"]
    cluster.patch("ConfigMap", "mine", {"data": {"second.conf": GOOD}}, "kube-system")
    cluster.settle()
    assert len(offered) == 1, "which of two is not to be guessed"
    assert ("Warning", "InvalidConfiguration") in events(cluster)
