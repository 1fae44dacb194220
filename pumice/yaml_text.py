# SPDX-License-Identifier: Apache-2.0
"""YAML that every reader reads alike: texts that kubectl would take for another type are quoted."""

from __future__ import annotations

from typing import Any

import yaml

from pumice.config.scalars import resolve_plain


class _Dumper(yaml.SafeDumper):
    """A dumper that quotes `y`, `08` and `1e3`: PyYAML leaves them unquoted, and Go's reader takes them for a boolean
    and for numbers.
    """


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if "\n" in text or isinstance(resolve_plain(text), str) else "'"
    represent: Any = getattr(dumper, "represent_scalar")  # noqa: B009 - its stub has no type for a value
    node: yaml.ScalarNode = represent("tag:yaml.org,2002:str", text, style=style)
    return node


_Dumper.add_representer(str, _represent_text)


def dump_yaml(value: object) -> str:
    """Return plain data as one YAML document, keys in their order."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
