# SPDX-License-Identifier: Apache-2.0
"""The watchdog of users' plugins, in a thread of its own: a plugin that does not return would block everything.

A function cannot be stopped from outside. So the process ends, and says whose doing it is: what has been acknowledged
is in the journal, the cycle that hangs is not, and the next start goes on from there.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic
from typing import Final

from pumice.core.plugins.failures import PluginQuestion

PATIENCE_S: Final = 60.0
"""Timeout of one answer of a plugin. A cycle should take less than its period, a second mostly."""
HUNG: Final = 3
"""The exit code: something outside of Pumice has failed."""

log = logging.getLogger(__name__)


@contextmanager
def watched(
    asked: PluginQuestion, patience_s: float = PATIENCE_S, end: Callable[[], object] = lambda: os._exit(HUNG)
) -> Generator[None]:
    """Watch while the block runs: `end` is called once a plugin has been at one answer for too long, after a message
    that names it.
    """
    stop = threading.Event()
    thread = threading.Thread(target=_watch, args=(asked, patience_s, end, stop), name="plugins", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _watch(asked: PluginQuestion, patience_s: float, end: Callable[[], object], stop: threading.Event) -> None:
    tick_s = min(patience_s / 4, 1.0)
    number, waited_s, looked = -1, 0.0, monotonic()
    while not stop.wait(tick_s):
        now = monotonic()
        waited_s += min(now - looked, 2 * tick_s)  # the process was stopped for the rest, and the plugin with it
        looked = now
        if not asked.plugin or asked.number != number:
            number, waited_s = asked.number, 0.0
        elif waited_s > patience_s:
            told = "plugin %s hangs in %s: no answer for %.0f s. The process ends; the journal is whole"
            log.critical(told, asked.plugin, asked.what, waited_s)
            if sys.__stderr__ is not None and sys.stderr is sys.__stderr__:
                faulthandler.dump_traceback(sys.__stderr__)
            end()
            return
