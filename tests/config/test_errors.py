"""The root of the error tree."""

import pickle
from typing import Any

from pumice.config.errors import (
    ConfigError,
    InternalError,
    PumiceError,
    RequestError,
    UnknownNameError,
    WorldError,
    WrongTypeError,
    describe,
    nearest_keys,
    nearest_name,
)
from pumice.core.errors import QuantityError, ResourceAssertionError


def test_split_by_whose_fault() -> None:
    for kind in (ConfigError, RequestError, WorldError, InternalError):
        assert kind.__mro__[1] is PumiceError
    assert issubclass(QuantityError, RequestError)
    assert issubclass(ResourceAssertionError, InternalError)


def test_a_place_has_as_many_parts_as_are_known() -> None:
    assert str(ConfigError("wrong")) == "wrong"
    assert str(ConfigError("wrong", source="f")) == "f: wrong"
    assert str(ConfigError("wrong", source="f", line=3, path="a.b")) == "f:3: a.b: wrong"
    assert str(ConfigError("wrong", line=3, path="a")) == "a: wrong"


def test_an_error_is_the_same_in_the_caller_of_a_worker() -> None:
    for error in (
        UnknownNameError("plugin", "gan", ["gang"], source="s.conf", line=3, path="tiers[0]"),
        InternalError("node twice", ("bound", "bound again")),
        RequestError("not so"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.args, vars(again)) == (type(error), str(error), error.args, vars(error))


def test_a_bug_tells_its_story() -> None:
    assert (
        str(InternalError("node twice", ("bound", "bound again")))
        == "bug in Pumice: node twice\n  bound\n  bound again"
    )


def test_nearest_name() -> None:
    assert nearest_name("ENABLEJOBORDER", ["enableJobOrder", "enableJobReady"]) == "enableJobOrder"
    assert nearest_name("zzz", ["enableJobOrder"]) is None
    assert UnknownNameError("key", "x", iter(["b", "a"])).problem == "unknown key 'x'; known: a, b"

    assert UnknownNameError("key", "x", ()).problem == "unknown key 'x'; there is none to be named here"


def test_nearest_keys_are_sought_in_every_namespace() -> None:
    known = ["research/huge", "default/hugo", "q/r"]
    assert nearest_keys("default/huge", known) == ["research/huge", "default/hugo"]
    assert nearest_keys("default/hug", ["a-long-namespace/huge", *known[2:]]) == ["a-long-namespace/huge"]
    assert nearest_keys("zzz", known) == []


def test_found_values_are_short() -> None:
    values: tuple[Any, ...] = (None, True, False, {}, [], 5, "x", "x" * 100)
    shown = [describe(value) for value in values]
    assert shown[:-1] == ["nothing", "true", "false", "a mapping", "a list", "5", "'x'"]
    assert len(shown[-1]) == 60
    assert WrongTypeError("a list", 5).found == 5
