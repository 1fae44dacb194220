"""Faults that a storm makes are counted by kind among the metrics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pumice.actors.api_server.faults.strikes import Fault, SeededFaults
from pumice.actors.gateway.handlers.health import exposed_faults
from pumice.storage.memory import MemoryJournal
from tests.actors.gateway.rig import PASSIVE, serving

pytestmark = pytest.mark.anyio


async def test_faults_by_kind() -> None:
    faults = SeededFaults(1, {}, crashable=())
    async with serving(MemoryJournal(), replace(PASSIVE, faults=faults)) as web:
        assert 'pumice_faults_total{kind="bind-lost"}' not in (await web.http.get("/metrics")).text
        faults.struck += [Fault("bind-lost", "here"), Fault("watch-gone", "there"), Fault("bind-lost", "again")]
        told = (await web.http.get("/metrics")).text.splitlines()
    assert [line for line in told if line.startswith("pumice_faults_total{")] == [
        'pumice_faults_total{kind="bind-lost"} 2.0',
        'pumice_faults_total{kind="watch-gone"} 1.0',
    ]


async def test_nobody_tells_of_faults_that_nobody_makes() -> None:
    async with serving(MemoryJournal(), PASSIVE) as web:
        assert "pumice_faults" not in (await web.http.get("/metrics")).text


def test_labels_are_escaped() -> None:
    assert b'kind="a\\"b"' in exposed_faults({'a"b': 1})
