# SPDX-License-Identifier: Apache-2.0
"""Search for the scheduler.conf in a given text: the text itself, or a ConfigMap that carries it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pumice.config.errors import ConfigError, ConfigSyntaxError
from pumice.config.read import ValuePlace, mapping
from pumice.config.yaml_tree import Document, read_documents

USUAL_KEY: Final = "volcano-scheduler.conf"
_ENDING = ".conf"


def scheduler_document(text: str, source: str) -> Document:
    """Return the document with the configuration in it; its lines are those of ``text``. Raises ConfigSyntaxError."""
    documents = read_documents(text, source)
    for document in documents:
        if not isinstance(document.data, dict):
            raise ValuePlace(document).wrong("a mapping with actions and tiers, or a ConfigMap", document.data)
    carriers = [document for document in documents if _is_config_map(document)]
    if carriers:
        return _carried(carriers, source)
    if not documents:
        raise ConfigSyntaxError("is empty: expected actions and tiers", source=source)
    if len(documents) > 1:
        raise ValuePlace(documents[1]).error(ConfigSyntaxError, "a second YAML document: expected one configuration")
    return documents[0]


def _is_config_map(document: Document) -> bool:
    return bool(document.data.get("kind") == "ConfigMap")


def _carried(carriers: list[Document], source: str) -> Document:
    """Return the configuration in the only ConfigMap that has one."""
    found = [place for document in carriers for place in _keys(document)]
    if not found:
        raise ConfigError(f"the ConfigMap has no key {USUAL_KEY} (nor another one ending in {_ENDING})", source=source)
    if len(found) > 1:
        names = ", ".join(place.dotted for place in found)
        raise found[1].error(ConfigError, f"more than one configuration in the ConfigMap: {names}")
    return _inner(found[0])


def conf_keys(names: Iterable[str]) -> list[str]:
    """Return the keys of a ConfigMap under which a scheduler configuration may stand: the usual one, or else every
    ``*.conf``.
    """
    found = [name for name in names if name.endswith(_ENDING)]
    return [USUAL_KEY] if USUAL_KEY in found else found


def _keys(document: Document) -> list[ValuePlace]:
    data = ValuePlace(document).at("data")
    values: dict[str, Any] = mapping(data, document.data.get("data"))
    return [data.at(key) for key in conf_keys(values)]


def _inner(place: ValuePlace) -> Document:
    outer = place.document
    value = outer.data["data"][place.path[-1]]
    if not isinstance(value, str):
        raise place.wrong("the text of a scheduler.conf", value)
    literal = place.path in outer.literals
    # The text of a `|` block begins on the line after its key.
    documents = read_documents(value, outer.source, place.line + 1 if literal else place.line)
    if len(documents) != 1:
        raise place.error(ConfigSyntaxError, f"expected one YAML document, was {len(documents)}")
    inner = documents[0]
    if not literal:  # a folded or quoted text has lost its lines
        inner = Document(inner.source, inner.data, dict.fromkeys(inner.lines, place.line), inner.texts)
    if not isinstance(inner.data, dict):
        raise ValuePlace(inner).wrong("a mapping with actions and tiers", inner.data)
    return inner
