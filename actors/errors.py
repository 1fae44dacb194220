# SPDX-License-Identifier: Apache-2.0
"""actors' branch of the error tree (root: config/errors.py).

WorldError
├── RecorderFailedError       the journal cannot be written: the process stops rather than run unlogged
├── ListenError               the gateway's address is taken, or none of this machine's
├── RemoteError               a real API server is gone, refuses, or answers what none does
├── CredentialsError          what to show it cannot be had: a plugin fails, a token's file is gone
└── LeaseLostError            another scheduler may be at work: this one stops
InternalError
├── UnknownMessageError       a message that its receiver does not know
├── UnexpectedReplyError      an answer of another type than the one asked for
├── ActorStoppedError         the receiver has stopped: its mailbox has no reader any more
├── ActorFailedError          the receiver crashed while the message was with it
├── HungActorError            an actor gave no sign of life and was taken away
├── CycleLostError            an action, or the core, raised in the middle of a cycle; the session is dropped
├── DryRunLostError           a chunk of a dry run failed wherever it was tried
├── WiringError               the roles in actors/system/roles are broken
└── BrokenViewError           the scheduler's own view contradicts itself
"""

from __future__ import annotations

from collections.abc import Iterator

from pumice.config.errors import InternalError, WorldError


class RecorderFailedError(WorldError):
    """The recorder could not write; no actor may go on without the journal."""


class ListenError(WorldError):
    """The gateway cannot listen on the address it was given."""


class RemoteError(WorldError):
    """A real API server refused or failed a request. `code` is HTTP's, 0 without an answer; `reason` Kubernetes' word.

    `retry_after_s`: when it wants to be asked again; None: it does not say.
    """

    def __init__(self, problem: str, code: int = 0, reason: str = "", retry_after_s: float | None = None) -> None:
        self.code = code
        self.reason = reason
        self.retry_after_s = retry_after_s
        super().__init__(problem)

    @property
    def expired(self) -> bool:
        """Return whether the revision asked for has expired: list again."""
        return self.code == 410 or self.reason in ("Expired", "Gone")


class BrokenAnswerError(RemoteError):
    """An answer began and did not finish."""


class CredentialsError(WorldError):
    """No credentials for a real API server exist."""


class LeaseLostError(WorldError):
    """The Lease could not be renewed in time, or another holder has it."""


class UnknownMessageError(InternalError):
    """A message that is not in the closed union of its receiver."""


class UnexpectedReplyError(InternalError):
    """An answer of another type than the expected one."""


class ActorStoppedError(InternalError):
    """The receiver has stopped."""

    def __init__(self, actor: str) -> None:
        self.actor = actor
        super().__init__(f"actor {actor} has stopped")


class ActorFailedError(InternalError):
    """The receiver crashed while the message was with it."""

    def __init__(self, actor: str, error: str, *, world: bool = False) -> None:
        """Set the message. `world`: the outside world is at fault, and `error` is the sentence."""
        self.actor = actor
        self.error = error
        self.world = world
        super().__init__(f"actor {actor} crashed over this message: {error}")

    def __str__(self) -> str:
        return self.problem  # a bug or not, the crash is reported where it happened


class HungActorError(InternalError):
    """The actor did not react and was removed; or no error occurred, and a fault was `injected`."""

    def __init__(self, actor: str, *, injected: bool = False) -> None:
        self.injected = injected
        super().__init__(f"actor {actor} was taken away")

    def __str__(self) -> str:
        return f"injected crash: {self.problem}" if self.injected else super().__str__()


class CycleLostError(InternalError):
    """An action, or the core at opening or closing, raised: the session is dropped, and no decision of it was sent."""


class DryRunLostError(InternalError):
    """A chunk of a dry run failed on every worker."""


class WiringError(InternalError):
    """The roles are inconsistent: a cycle of blocking sends, or a name that does not exist."""


class BrokenViewError(InternalError):
    """The scheduler's own view contradicts itself (`View.check`)."""


def chief(error: BaseException) -> BaseException:
    """Return the first cause in an error group: the recorder's failure, since others follow from it."""
    leaves = list(_leaves(error))
    return next((leaf for leaf in leaves if isinstance(leaf, RecorderFailedError)), leaves[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    if not inner:
        yield error
    for each in inner:
        yield from _leaves(each)


def blames_the_world(error: BaseException) -> bool:
    """Return whether the process ends because of the outside world, here or where an answer was to come from."""
    cause = chief(error)
    return isinstance(cause, RecorderFailedError) or (isinstance(cause, ActorFailedError) and cause.world)


def words_of(error: BaseException) -> str:
    """Return the text of an error for the actor that waits for an answer. A cancellation gives its name alone: trio's
    text contains a memory address of the task, which differs in every run.
    """
    if blames_the_world(error):
        cause = chief(error)
        return cause.error if isinstance(cause, ActorFailedError) else str(cause)
    return repr(error) if isinstance(error, Exception) else type(error).__name__
