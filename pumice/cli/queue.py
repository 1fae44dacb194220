# SPDX-License-Identifier: Apache-2.0
"""`pumice queue`: the queues' amounts, and the waiting jobs in their order, with the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from pumice.cli.exits import Exit
from pumice.cli.options import Manifests, PluginsDir
from pumice.cli.sources import At, Certificate, Db, OwnConfig, ServerUrl, Token, TokenFile, scene_from, server_of
from pumice.cli.tables.frame import held_lately
from pumice.cli.tables.standings import QueueTree
from pumice.cli.tables.table import WholeTable
from pumice.cli.terminal import Terminal, speaking
from pumice.core.plugins.capacity.limits import ROOT
from pumice.questions.adviser.queues import weights_remark
from pumice.questions.adviser.waiting_jobs import WaitingJob, WaitingJobs, waiting_jobs_of
from pumice.questions.explain.scene import Scene

if TYPE_CHECKING:
    from pumice.questions.eta.estimate import Estimate

SHOWN: Final = 50
"""Waiting jobs in a table; JSON has all."""


@speaking
def queue(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Only this queue and those below it.", show_default=False)
    ] = None,
    db: Db = None,
    at: At = None,
    server: ServerUrl = None,
    token: Token = None,
    token_file: TokenFile = None,
    certificate: Certificate = None,
    manifests: Manifests = None,
    config: OwnConfig = None,
    eta: Annotated[bool, typer.Option("--eta", help="Estimate when each job starts, as pumice eta does.")] = False,
    plugins_dir: PluginsDir = None,
    *,
    terminal: Terminal,
    lenient: bool = False,
) -> int:
    """Decide the cycle with a trail of all jobs, and list the waiting jobs after it."""
    asked = server_of(server, token, token_file, certificate, terminal)
    scene = scene_from(db, at, asked, manifests, config, plugins_dir, lenient, terminal)
    waiting_jobs = waiting_jobs_of(scene)
    if remark := weights_remark(scene.config, weights_of(scene), waiting_jobs):
        terminal.warn(remark)
    waiting_jobs = waiting_jobs if name is None else waiting_jobs.within(name)
    starts: dict[str, Estimate] | None = None
    if eta:
        from pumice.cli.futures.estimates import estimated  # noqa: PLC0415 - futures take half of a start
        from pumice.cli.futures.options import ForkSource  # noqa: PLC0415
        from pumice.questions.eta.estimate import FutureSampling  # noqa: PLC0415

        source = ForkSource(db, at, asked, manifests, config, plugins_dir, lenient)
        starts = estimated(source, None, FutureSampling(), terminal)
    past = db if manifests or asked else db or Path("pumice.db")
    lately = held_lately(past, asked, waiting_jobs.now) if terminal.tables else {}
    terminal.emit(waiting_jobs.standings(starts), lambda console: show(console, waiting_jobs, starts or {}, lately))
    return Exit.USAGE if terminal.errors else Exit.DONE


def weights_of(scene: Scene) -> dict[str, int]:
    """Return the weights of the queues, by name."""
    return {name: queue.weight for name, queue in scene.view.queues.items() if name != ROOT}


def estimate_of(starts: dict[str, Estimate], group: str, made_for: str) -> str:
    """Return the estimate for a PodGroup, or for the job that it was made for, in words; "" for none."""
    estimate = starts.get(group) or starts.get(made_for)
    return estimate.range_words if estimate is not None else ""


def show(console: Console, waiting_jobs: WaitingJobs, starts: dict[str, Estimate], lately: dict[str, str]) -> None:
    """Print the tree, then the waiting jobs."""
    console.print(QueueTree(f"queues as cycle {waiting_jobs.cycle} opened", waiting_jobs.queues))
    if lately:
        console.print(_past(lately))
    said = [waiting_jobs.supposed, *(each.supposed for each in starts.values())]
    for sentence in {sentence: None for each in said for sentence in each}:
        console.print(sentence)
    if not waiting_jobs.waiting:
        console.print("No job waits.")
        return
    console.print(_waiting(waiting_jobs, starts))
    left = len(waiting_jobs.waiting) - SHOWN
    if left > 0:
        console.print(f"and {left} more (-o json has all)")
    counts = Counter((job.wait.wait_class, job.wait.code) for job in waiting_jobs.waiting)
    told = ", ".join(f"{count} {code} ({kind})" for (kind, code), count in counts.most_common())
    console.print(f"{len(waiting_jobs.waiting)} wait: {told}")


def _past(lately: dict[str, str]) -> WholeTable:
    table = WholeTable("queue", "held lately")
    for name, line in lately.items():
        table.add_row(name, line)
    return table


def _waiting(waiting_jobs: WaitingJobs, starts: dict[str, Estimate]) -> WholeTable:
    more = ("starts in",) if starts else ()
    table = WholeTable("#", "job", "queue", "placed", "reason", *more, "waits for", sentences=True)
    names = {job.job: job.name for job in waiting_jobs.waiting}
    for job in waiting_jobs.waiting[:SHOWN]:
        table.add_row(
            "" if job.position is None else str(job.position),
            job.name,
            job.queue,
            f"{job.held} of {job.held + job.pods}",
            job.wait.code.value,
            *([estimate_of(starts, job.job, job.name)] if starts else ()),
            job.wait.sentence + _before(job, names),
        )
    return table


def _before(job: WaitingJob, names: Mapping[str, str]) -> str:
    earlier = job.place.before_it
    return "" if earlier is None else f"; comes after {names.get(earlier.job, earlier.job)}: {earlier.words}"
