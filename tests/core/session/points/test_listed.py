"""Which plugins may speak at which point, and for how long that is kept."""

from pumice.config.schema import PluginOption, SchedulerConfig, Tier
from pumice.core.session.points.point import FLAGS, Listed, listed_plugins
from pumice.core.state.derived import itself


def config(*tiers: dict[str, dict[str, bool]]) -> SchedulerConfig:
    """One dictionary a tier: plugin -> its flags."""
    return SchedulerConfig(
        ("allocate",), tuple(Tier(tuple(PluginOption(name, on) for name, on in tier.items())) for tier in tiers)
    )


def test_a_plugin_is_listed_where_its_flag_is_on() -> None:
    listed = Listed(config({"a": {"JobOrder": True}, "b": {"JobOrder": False}}, {"c": {"JobOrder": True}}))
    assert listed["JobOrder"] == (("a",), ("c",))
    assert listed["QueueOrder"] == ((), ())


def test_points_without_a_flag_list_every_plugin() -> None:
    listed = Listed(config({"a": {}, "b": {}}))
    assert all(listed[point] == (("a", "b"),) for point, flag in FLAGS.items() if flag is None)


def test_trials_are_listed_by_either_of_two_flags() -> None:
    listed = Listed(config({"a": {"Preemptable": True}, "b": {"Allocatable": True}, "c": {}}))
    assert listed["SimulateAddTask"] == listed["SimulateRemoveTask"] == (("a", "b"),)


def test_one_configuration_is_read_once_and_no_other_is_taken_for_it() -> None:
    one, other = config({"a": {"JobOrder": True}}), config({"b": {"JobOrder": True}})
    first = listed_plugins(itself(one))
    assert listed_plugins(itself(one)) is first
    assert listed_plugins(itself(other))["JobOrder"] == (("b",),)
    assert listed_plugins(itself(one)) is first
