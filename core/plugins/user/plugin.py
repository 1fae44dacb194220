"""Stands in for a user's plugin in the table of plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pumice.core.plugins.user.failures import PluginFailures, PluginQuestion, Tell
from pumice.core.plugins.user.points import GuardedSession
from pumice.core.session.points.nodes import TEMPLATE_ONLY
from pumice.core.session.points.ready import ReadyCheck

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.plugins.plugin import Plugin, PluginBuilder
    from pumice.core.session.session import Session


class UserPlugin:
    """A plugin that cannot harm a cycle. Argument `onError`: `ignore` (default) or `fail`, see Failures; the user's
    own builder sees it too.

    A plugin that fails while it opens registers nothing; with `onError: fail` no node will do then.
    """

    def __init__(
        self,
        name: str,
        builder: PluginBuilder,
        arguments: dict[str, Any],
        tell: Tell | None = None,
        asked: PluginQuestion | None = None,
    ) -> None:
        self.name = name
        self._builder, self._arguments = builder, arguments
        self.failures = PluginFailures(name, arguments, tell, asked)
        self._plugin: Plugin | None = None

    def on_session_open(self, session: Session) -> None:
        """Build the plugin and let it register."""
        self.failures.begin(session)
        guarded_session = GuardedSession(session, self.failures)

        def open_plugin() -> None:
            plugin = self._builder(self._arguments)
            plugin.on_session_open(cast("Session", guarded_session))
            guarded_session.points.settle()
            self._plugin = plugin

        def instead(sentence: str) -> None:
            if self.failures.refuses:
                session.points.predicate.add(self.name, [Closed(session, self.failures, sentence)])

        self.failures.attempt("on_session_open", open_plugin, instead)

    def on_session_close(self, session: Session) -> None:
        """Tell the plugin; what it fails to do then is only noted."""
        plugin = self._plugin
        if plugin is not None:
            self.failures.attempt("on_session_close", lambda: plugin.on_session_close(session), lambda _: None)


class Closed:
    """Refuses every node, for the reason that its plugin did not open."""

    reads = TEMPLATE_ONLY

    def __init__(self, session: Session, failures: PluginFailures, sentence: str) -> None:
        self.name = failures.plugin
        codes = session.nodes.max_pods.astype("int32")
        codes[:] = session.reasons.intern(failures.reason(sentence))
        self._check = ReadyCheck(codes)

    def prepare(self, session: Session, task: Task) -> ReadyCheck:
        """One check for every task."""
        return self._check


def guarded(
    name: str, builder: PluginBuilder, tell: Tell | None = None, asked: PluginQuestion | None = None
) -> PluginBuilder:
    """A builder of guarded plugins; `tell` hears of failures, `asked` says which plugin is at work."""
    return lambda arguments: UserPlugin(name, builder, arguments, tell, asked)
