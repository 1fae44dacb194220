# SPDX-License-Identifier: Apache-2.0
"""The words of a plugin or a family of devices: those that it reads and writes on objects, apart from names given by
people.

Who hides the names in a cluster keeps these, and replaces or drops all else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pumice.core.objects.metadata import Object

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Vocabulary(NamedTuple):
    """`meanings`: labels and annotations whose values are not names. `holds_names`: annotations whose values are names.

    `domains`: domains of annotations that are read, with a pattern of what is read there; "": everything, domains below
    it included. `models`: labels with a pattern of those values that are not names. `words`: words of its messages.
    `kept`: annotations with a function that gives what is read of a value. `renamed`: (a ConfigMap, what stands for a
    name) -> the ConfigMap with other names; None for a ConfigMap that the owner of the words does not read.
    """

    meanings: tuple[str, ...] = ()
    holds_names: tuple[str, ...] = ()
    domains: Mapping[str, str] = _NOTHING
    models: Mapping[str, str] = _NOTHING
    words: str = ""
    kept: Mapping[str, Callable[[Any], str]] = _NOTHING
    renamed: Callable[[Object, Callable[[str], str]], Object | None] | None = None
