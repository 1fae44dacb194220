# SPDX-License-Identifier: Apache-2.0
"""`pumice explain`: why a pod or a job is pending, was placed where it is, or was evicted."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import anyio
import msgspec
import typer
from rich.console import Console

from pumice import units
from pumice.cli.exits import Exit, UsageError
from pumice.cli.inputs import in_force
from pumice.cli.options import Manifests, Now, PluginsDir, moment_said
from pumice.cli.sources import Certificate, Db, OwnConfig, ServerUrl, Token, TokenFile, server_of
from pumice.cli.tables.summary import said
from pumice.cli.tables.table import WholeTable
from pumice.cli.terminal import Terminal, speaking
from pumice.cluster.controllers.jobs.status import CREATION_REFUSED
from pumice.collecting import rarely
from pumice.config.schema import SchedulerConfig
from pumice.core.objects.metadata import is_mapping
from pumice.questions.explain.account import Account, StepsTold
from pumice.questions.explain.asked import SETTLED, accounted, last_job, recorded, submitted_again, with_owners
from pumice.questions.explain.ended import end_among, end_in
from pumice.questions.explain.refused import RefusedBind, refused_among
from pumice.questions.explain.scene import EXPLAINED, Scene, jobs_of, pods_of, present
from pumice.questions.explain.server import Server, ServerError, answers_alone, ask, fetch, next_cycle
from pumice.questions.replay.plugins import demand_plugins
from pumice.questions.whatif.naming import identity_named

if TYPE_CHECKING:
    from pumice.core.objects.metadata import Object
    from pumice.questions.explain.advice.advise import Advice

DIFFERS: Final = (
    "cycle {} comes out otherwise now than it was recorded (pumice replay --verify tells more): what follows is what "
    "would be decided, not what was"
)
OBSERVED: Final = (
    "cycle {} was the cluster's own scheduler's, seen from outside: {} was {} there; what follows is what would be "
    "decided here"
)


@speaking
@rarely()
def explain(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"Kind of the object: {', '.join(EXPLAINED)}.")],
    name: Annotated[
        str | None,
        typer.Argument(metavar="NS/NAME", help="Name of the object. Left out where KIND is KIND/NAME or KIND/NS/NAME."),
    ] = None,
    db: Db = None,
    server: ServerUrl = None,
    token: Token = None,
    token_file: TokenFile = None,
    certificate: Certificate = None,
    manifests: Manifests = None,
    config: OwnConfig = None,
    cycle: Annotated[
        int | None,
        typer.Option(
            "--cycle",
            metavar="N",
            min=1,
            help="Cycle of the journal. Default: the newest while it waits, else the last that decided about it.",
        ),
    ] = None,
    now: Now = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--budget", min=0.0, metavar="S", help="Work for trying changes that would help; a second is 10,000 units."
        ),
    ] = 10.0,
    plugins_dir: PluginsDir = None,
    *,
    terminal: Terminal,
    lenient: bool = False,
) -> int:
    """Decide the cycle again and explain its result for the object; the exit code is 2 when some of the input could not
    be used.
    """
    asked = server_of(server, token, token_file, certificate, terminal)
    if now is not None and not manifests:
        raise UsageError("a server and a journal have their own clock; --now goes with -f", path="--now")
    (known, whole), file = _object_named(kind, name), None
    if asked is not None and config is None and cycle is None and answers_alone(asked):
        return _tell_answer(answered(asked, known, whole, seconds), terminal)
    ended, again, code = None, None, Exit.DONE
    if asked is not None or manifests:
        if cycle is not None:
            raise UsageError("this shows the present; a recorded cycle is in a journal: --db", path="--cycle")
        _, settings = in_force(config, asked, plugins_dir, lenient, terminal.warn)
        scene, code = _present(asked, manifests or (), settings, moment_said(now), terminal)
        ended = end_among(whole, scene.objects()) if known == "job" else None
        if asked is not None:
            scene = counted(scene, asked, known, whole)
    else:
        _refuse_for_journal(config)
        file = db or Path("pumice.db")
        anyio.run(demand_plugins, file, plugins_dir, terminal.warn)
        scene = anyio.run(recorded, file, known, whole, cycle, terminal.warn)
        ended = anyio.run(end_in, file, whole) if cycle is None and known == "job" else None
        again = anyio.run(last_job, file, whole) if ended and ended["reason"] == CREATION_REFUSED else None
    gc.freeze()  # what was loaded stays: the collector need not look at it again and again
    _tell(accounted(scene, known, whole, ended), Occasion(scene, file, again), seconds, terminal)
    return code


def _present(
    server: Server | None, manifests: Sequence[str], settings: SchedulerConfig, now: float | None, terminal: Terminal
) -> tuple[Scene, Exit]:
    """Return the state that a server shows now, or manifests as of `now`; the exit code tells whether all could be
    used.
    """
    if server is None:
        from pumice.cli.manifests import take_manifests  # noqa: PLC0415 - an API, which a journal does not need

        (objects, whole, now, _), cycle = take_manifests(manifests, (), now, terminal), 1
    else:
        objects, whole, now, cycle = fetch(server), True, time.time(), next_cycle(server)
    return present(objects, settings, now, terminal.warn, cycle), Exit.DONE if whole else Exit.USAGE


MOST_S: Final = 60.0
"""The largest budget that a server accepts."""


def answered(server: Server, kind: str, name: str, seconds: float) -> Account:
    """Return the server's own answer, as of its newest cycle. Raises ServerError."""
    namespace, _, bare = name.partition("/")
    told = ask(server, f"namespaces/{namespace}/explanations/{bare}?of={kind}&budget={min(seconds, MOST_S):g}")
    return msgspec.convert({**told, "kind": told.get("of")}, Account)  # `kind` is the answer's own there


def _tell_answer(account: Account, terminal: Terminal) -> Exit:
    def table(console: Console) -> None:
        show(console, account)
        show_advice(console, account)

    terminal.emit(account, table)
    return Exit.DONE


def _refuse_for_journal(config: Path | None) -> None:
    if config is not None:
        raise UsageError("a journal holds its own configuration; --config goes with --server and -f", path="--config")


def counted(scene: Scene, server: Server, kind: str, name: str) -> Scene:
    """Return the number of refused binds of a pod from the journal; the pod's condition only tells that one was
    refused.
    """
    pods = pods_of(scene.view, kind, name, jobs_of(scene.view, kind, name))
    if not refused_among(scene.view, pods, {}):
        return scene
    namespace, _, bare = name.partition("/")
    try:
        told: Object = ask(server, f"namespaces/{namespace}/explanations/{bare}?of={kind}").get("refused") or {}
    except ServerError:  # a Volcano has no such answers
        return scene
    tasks = scene.view.tasks.by_key
    return replace(scene, refused={tasks[pod].uid: RefusedBind(**told[pod]) for pod in told if pod in tasks})


def _object_named(kind: str, name: str | None) -> tuple[str, str]:
    """Return the kind and the "namespace/name" that are meant. Raises UsageError, InputError."""
    if name is None and "/" not in kind:
        raise UsageError("expected a name, found none", path="NS/NAME")
    known, namespace, bare = identity_named(kind if name is None else f"{kind}/{name}")
    if known.lower() not in EXPLAINED:
        raise UsageError(f"cannot explain a {known}; known: {', '.join(EXPLAINED)}", path="KIND")
    return known.lower(), f"{namespace}/{bare}"


@dataclass(frozen=True, slots=True)
class Occasion:
    """The state in which advice is searched. `file`: the journal, if it comes from one; `again`: an ended Job that
    could be submitted again.
    """

    scene: Scene
    file: Path | None
    again: Object | None

    def advise(self, kind: str, name: str, seconds: float) -> Advice:
        """Return the changes that would help, or would have helped."""
        from pumice.questions.explain.advice.advise import advise  # noqa: PLC0415 - an API, for what waits alone

        scene = self.scene if self.file is None else with_owners(self.scene, self.file)
        if self.again is None or jobs_of(scene.view, kind, name):
            return advise(scene, kind, name, seconds)
        advice = advise(submitted_again(scene, self.again), kind, name, seconds)
        return replace(advice, remark="; ".join(filter(None, (advice.remark, "tried as if it were submitted again"))))


def _tell(account: Account, occasion: Occasion, seconds: float, terminal: Terminal) -> None:
    """Print the reason first; advice takes its time."""
    if terminal.tables:
        show(terminal.out, account, recorded=occasion.scene.recorded is not None)
        sys.stdout.flush()
    decided = frozenset(account.supposed)
    if account.state not in SETTLED:
        account.take(occasion.advise(account.kind, account.name, seconds))
    terminal.emit(account, lambda console: show_advice(console, account, decided))


def _difference(account: Account) -> str:
    if not account.observed:
        return DIFFERS.format(account.cycle)
    return OBSERVED.format(account.cycle, account.differs.get("task"), said(account.differs.get("recorded")))


def show(console: Console, account: Account, *, recorded: bool = True) -> None:
    """Print the sentence first, then the counts."""
    where = f" in cycle {account.cycle}" if recorded else ""
    code = f" ({account.reason})" if account.wait is not None else ""
    console.print(f"{account.kind} {account.name}{where}: {account.state}{code}")
    if account.differs:
        console.print(_difference(account))
    if account.message:
        console.print(account.message)
    if account.nodes:
        table = WholeTable(f"of {units.counted(sum(account.nodes.values()), 'node')}", "how many")
        for reason, count in account.nodes.items():
            table.add_row(reason, str(count))
        console.print(table)
    for node, sentences in account.cards.items():
        console.print(f"cards of {node}: {'. '.join(sentences)}")
    for plugin, told in account.plugins.items():
        console.print(f"{plugin}: {', '.join(f'{key} {_words(value)}' for key, value in told.items())}")
    for each in account.job.get("steps", ()):
        show_steps(console, each)


def show_advice(console: Console, account: Account, decided: frozenset[str] = frozenset()) -> None:
    """Print the changes that would help, and why there are not more. `decided`: assumptions of the cycle itself, not
    only of the advice."""
    for advice in account.unblock:
        console.print(advice)
    if remark := account.tried.get("remark"):
        console.print(f"advice: {remark}")
    for sentence in account.supposed:
        console.print(sentence if sentence in decided else f"advice: {sentence}")


def show_steps(console: Console, told: StepsTold) -> None:
    """Print the step that stopped an action first, then the steps before it."""
    shown = [step for step in told["steps"] if step != told["stopped"]]
    first = told["stopped"] or (shown.pop() if shown else "")
    console.print(f"{told['action']}: {first}")
    for step in shown:
        console.print(f"  {step}")


def _words(value: object) -> str:
    """Return a figure, or figures by node."""
    if is_mapping(value):
        return ", ".join(f"{node} {figure:g}" for node, figure in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)
