"""Names that earlier versions of Volcano had are refused with what stands in their place."""

from __future__ import annotations

import pytest

from pumice.config.arguments import argument_named
from pumice.config.errors import UnknownNameError
from pumice.config.known import KNOWN_ACTIONS
from pumice.config.moved import MOVED_ACTIONS, MOVED_ARGUMENTS, MOVED_PLUGINS
from pumice.core.configuration import parse_scheduler_config
from pumice.core.plugins import BUILT_IN

PLUGIN = 'actions: "allocate"\ntiers:\n- plugins:\n  - {name: %s}\n'


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        (PLUGIN % "predicates, arguments: {predicate.GPUSharingEnable: true}", "deviceshare.GPUSharingEnable"),
        (PLUGIN % "predicates, arguments: {predicate.VGPUEnable: true}", "deviceshare.VGPUEnable"),
        (PLUGIN % "predicates, arguments: {predicate.ProportionalEnable: true}", "resource-strategy-fit"),
        (PLUGIN % "predicates, arguments: {predicate.resources.nvidia.com/gpu.cpu: 4}", "resource-strategy-fit"),
        (PLUGIN % "nodeorder, arguments: {selectorspread.weight: 1}", "podtopologyspread.weight"),
        (PLUGIN % "usage, arguments: {CPUUsageAvg.5m: 80}", "thresholds"),
        (PLUGIN % "gang, disableJobOrder: true", "enableJobOrder: false"),
        (PLUGIN % "gang, enabledPodBunchReady: true", "enabledSubJobReady"),
        (PLUGIN % "devices", "it is called deviceshare now"),
        ('actions: "reserve, allocate"\n', "plugin sla"),
    ],
)
def test_moved_name_is_refused_with_its_replacement(text: str, instead: str) -> None:
    with pytest.raises(UnknownNameError, match="earlier versions of Volcano had it") as caught:
        parse_scheduler_config(text, source="c")
    assert instead in str(caught.value)
    warned = parse_scheduler_config(text, source="c", lenient=True).warnings
    assert any(instead in each for each in warned)


def test_no_moved_name_is_known_still() -> None:
    known = [argument for plugin in BUILT_IN.values() for argument in plugin.arguments]
    assert not [name for name in MOVED_ARGUMENTS if argument_named(name, known)]
    assert not MOVED_PLUGINS.keys() & BUILT_IN.keys()
    assert not set(MOVED_ACTIONS) & set(KNOWN_ACTIONS)
