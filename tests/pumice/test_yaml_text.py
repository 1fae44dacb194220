"""YAML that Pumice writes is read alike by Go's readers and by ours."""

from __future__ import annotations

import pytest
import yaml

from pumice.load.documents import ManifestDocument, read_documents
from pumice.yaml_text import dump_yaml


@pytest.mark.parametrize("text", ["y", "N", "08", "1e3", "0b1", "1_0", "", "~", "a\ny", "plain", "1Gi", "=", "<<"])
def test_dump_yaml_of_a_text_is_that_text_to_every_reader(text: str) -> None:
    written = dump_yaml({"a": text})
    (document,) = read_documents(written)
    assert isinstance(document, ManifestDocument)
    assert document.value == yaml.safe_load(written) == {"a": text}


def test_dump_yaml_leaves_plain_what_is_clear() -> None:
    assert dump_yaml({"b": "plain", "a": [1, None, True]}) == "b: plain\na:\n- 1\n- null\n- true\n"
