# SPDX-License-Identifier: Apache-2.0
"""The interface of a plugin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pumice.config.arguments import PluginArguments
from pumice.core.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pumice.config.arguments import Argument
    from pumice.config.schema import PluginOption
    from pumice.core.devices.family import Family
    from pumice.core.messages.queue_tables import QueueTables
    from pumice.core.session.session import Session
    from pumice.core.state.snapshot import Snapshot


class Plugin(Protocol):
    """A plugin, built for every session from its arguments; it registers functions when the session opens."""

    name: str

    def on_session_open(self, session: Session) -> None:
        """Read the session, register functions and event handlers."""
        ...

    def on_session_close(self, session: Session) -> None:
        """Write conditions after the actions."""
        ...


class KnowsDevices:
    """A plugin that finds nodes' devices: it does so before any plugin opens, so that all plugins see them, whatever
    their order. It is a base class, not a protocol: every session asks every plugin, and a check of methods costs a
    tenth of a small session.
    """

    families: tuple[type[Family], ...] = ()
    """The kinds of devices that it knows."""

    def find_devices(self, session: Session) -> None:
        """Tell the session its nodes' devices."""
        raise NotImplementedError


PluginBuilder = Callable[[PluginArguments], Plugin]


class Limit(Enum):
    """The owner of the limit up to which a plugin admits jobs."""

    CLUSTER = "cluster"
    QUEUE = "queue"
    NAMESPACE = "namespace"


class OrderNumber(NamedTuple):
    """The numbers by which a plugin orders jobs, the smaller one first: a description, a factor for display (people say
    that the higher priority goes first), and whether they are times.
    """

    words: str
    factor: float = 1.0
    is_time: bool = False


class BuiltInPlugin:
    """The base of all built-in plugins, and the record of each: these attributes, beside the plugin's code, hold all
    facts that other modules read about it.

    What it is: `name`; `says` completes "it …" in `pumice check`; `of_volcano`: Volcano has it too; `asks_outside`: it
    asks a process over HTTP. `only_answers`: in a session where it is not asked it writes and remembers nothing;
    `only_places`: it answers about nodes only, too.

    What it reads: `arguments`; `sections`: what it reads beside them, by the name among `configurations`; `exclusive`:
    switches, at most one for Volcano; `switches`: without one of these on it does nothing.

    What it is asked: `listens`: the points at whose flags it registers rules, `says_at`: what it says there, where that
    is not the usual. `needs_action`: the action without which it is asked nothing. `limits`: it admits jobs up to a
    limit. `orders_by`: the numbers of its order of jobs. `protects`: why it keeps any pod from eviction, where it has
    one reason for all; `names_gangs`: it names victims for whole gangs, a point that has no flag.

    `within_nodes`: its refusals are about parts of nodes. `vocabulary`: words that it reads and says, names excepted.
    """

    name: str = ""
    says: str = ""
    of_volcano: bool = True
    asks_outside: bool = False
    only_answers: bool = False
    only_places: bool = False

    arguments: tuple[Argument[Any], ...] = ()
    sections: Mapping[str, tuple[Argument[Any], ...]] = MappingProxyType({})
    exclusive: tuple[str, ...] = ()
    switches: tuple[Argument[bool], ...] = ()

    listens: tuple[str, ...] = ()
    says_at: Mapping[str, str] = MappingProxyType({})
    needs_action: str = ""
    limits: Limit | None = None
    orders_by: OrderNumber | None = None
    protects: str = ""
    names_gangs: bool = False

    within_nodes: bool = False
    vocabulary: Vocabulary = Vocabulary()

    def __init__(self, arguments: PluginArguments) -> None:
        """Read the plugin's arguments. Raises ConfigError."""

    @classmethod
    def is_asked_at(cls, point: str, option: PluginOption) -> bool:
        """Return whether the plugin, as a configuration lists it, registers rules at a point, whatever its flag."""
        return point in cls.listens

    @classmethod
    def deserved_in(cls, snapshot: Snapshot) -> QueueTables | None:
        """Return what queues would deserve in a session on the snapshot; None where only a session knows it."""
        return None

    def on_session_open(self, session: Session) -> None:
        """Read the session, register functions and event handlers."""
        raise NotImplementedError

    def on_session_close(self, session: Session) -> None:
        """Write conditions after the actions, of a plugin that has any."""

    def can_go_on(self, session: Session) -> bool:
        """Return whether all that the plugin registered in an earlier session, on the same columns and nodes and under
        the same configuration, serves this one, too, after `on_session_renew`.
        """
        return False

    def on_session_renew(self, session: Session) -> None:
        """Read the session; everything is registered since an earlier one."""
