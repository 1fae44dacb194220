"""Advisers for tests: they run in a process of their own, which finds them by their names."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from pumice.actors.gateway.advice import AdviserAnswer, AdviserQuestion


def repeats(question: AdviserQuestion) -> AdviserAnswer:
    """Says what it was asked; refuses what is called nobody."""
    if question.name == "nobody":
        return AdviserAnswer(404, reason="NotFound", message="there is nobody")
    said = {"resource": question.resource, "namespace": question.namespace, "name": question.name}
    return AdviserAnswer(200, json.dumps({**said, "query": dict(question.query), "pid": os.getpid()}).encode())


def says_who_sees(question: AdviserQuestion) -> AdviserAnswer:
    """Says what its asker may see."""
    return AdviserAnswer(200, json.dumps({"sees": question.sees}).encode())


def counts(question: AdviserQuestion) -> AdviserAnswer:
    """Two jobs wait for capacity."""
    assert question.resource == "waitclasses"
    waiting = [{"queue": 'q"1', "class": "NoCapacity", "reason": "InUse", "jobs": 2}]
    return AdviserAnswer(200, json.dumps({"cycle": 7, "counts": waiting}).encode())


def sleeps(folder: str, question: AdviserQuestion) -> AdviserAnswer:
    """Writes its process number and sleeps for a long time."""
    Path(folder, "pid").write_text(str(os.getpid()))
    time.sleep(60)
    return repeats(question)


def dies(question: AdviserQuestion) -> AdviserAnswer:
    """As when memory is short."""
    os._exit(3 if question else 4)
