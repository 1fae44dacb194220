"""Answers of a Prometheus, good and bad, and the objects made of them."""

import json

import pytest

from pumice.core.objects.node import read_node
from pumice.core.objects.node_usage import (
    AnswerError,
    NodeUsage,
    node_metrics,
    usage_of,
    values_of,
)
from tests.kit import node


def vector(**values: str) -> bytes:
    samples = [{"metric": {"instance": name}, "value": [1.5, value]} for name, value in values.items()]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": samples}}).encode()


def test_values_by_instance() -> None:
    assert values_of(vector(n0="41.5", n1="NaN", n2="+Inf", n3="many", n4="0")) == {"n0": 41.5, "n4": 0.0}
    assert values_of(b'{"data": {"result": [{"metric": {"job": "node"}, "value": [1, "2"]}]}}') == {}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b'{"status": "error", "errorType": "bad_data", "error": "parse error"}', "parse error"),
        (b"{}", "no data"),
        (b"<html>", "malformed"),
        (b'{"data": {"resultType": "scalar", "result": [1, "2"]}}', "Expected `object`"),
    ],
)
def test_what_is_no_answer(answer: bytes, words: str) -> None:
    with pytest.raises(AnswerError, match=words):
        values_of(answer)


def test_what_is_written_is_what_the_core_reads() -> None:
    spec = read_node(node("n0"))
    made = node_metrics("n0", {"n0": 41.5}, {}, "1970-01-01T00:00:07Z")
    assert usage_of(spec, {}, {"n0": made}, 99.0) == NodeUsage(7.0, {"10m": 41.5}, {})
