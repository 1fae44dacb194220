# SPDX-License-Identifier: Apache-2.0
"""`pumice whatif`: both futures of a cluster, as it is and changed, and the difference."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pumice.cli.exits import Exit, UsageError
from pumice.cli.futures import options
from pumice.cli.futures.options import (
    BUDGET_S,
    HORIZON,
    WITHIN,
    ForkSource,
    asked_for,
    refuse_beside_search,
    seconds_of,
    to_be_made,
    words_of,
)
from pumice.cli.futures.search import SearchOptions, search
from pumice.cli.futures.tables import show
from pumice.cli.options import Dask, Manifests, PluginsDir
from pumice.cli.sources import Certificate, Db, ServerUrl, Token, TokenFile, server_of
from pumice.cli.terminal import Terminal, speaking
from pumice.cluster.kernel.fork import Fork
from pumice.collecting import rarely
from pumice.executors import Executors, executors
from pumice.questions.whatif.ask import accepted, another_process, prepare, what_if
from pumice.questions.whatif.changes import changed
from pumice.questions.whatif.difference import FutureDifference
from pumice.questions.whatif.saving import save

Against = Annotated[
    str | None, typer.Option(metavar="'CHANGES'", help="Compare with these changes, not with the state as it is.")
]
SearchWorkers = Annotated[
    int, typer.Option("--workers", metavar="N", min=1, help="With --until-starts: number of processes.")
]
Save = Annotated[
    Path | None,
    typer.Option("--save", metavar="FILE", help="Write the changed future as a journal.", show_default=False),
]


@speaking
def whatif(
    db: Db = None,
    at: options.At = None,
    server: ServerUrl = None,
    token: Token = None,
    token_file: TokenFile = None,
    certificate: Certificate = None,
    manifests: Manifests = None,
    submit: options.Submit = None,
    add_nodes: options.AddNodes = None,
    remove_node: options.RemoveNode = None,
    drain: options.Drain = None,
    cordon: options.Cordon = None,
    set_: options.SetField = None,
    delete: options.DeleteObject = None,
    scale: options.Scale = None,
    config: options.OtherConfig = None,
    against: Against = None,
    until_starts: options.UntilStarts = None,
    within: options.Within = WITHIN,
    like: options.Like = None,
    budget: options.Budget = BUDGET_S,
    workers: SearchWorkers = 1,
    dask: Dask = None,
    base_config: options.BaseConfig = None,
    horizon: options.Horizon = None,
    default_duration: options.DefaultDuration = None,
    seed: options.Seed = 0,
    save_as: Save = None,
    plugins_dir: PluginsDir = None,
    *,
    terminal: Terminal,
    lenient: bool = False,
) -> int:
    """Compare two futures. Exit code 1 when they differ, 2 when an object could not be used."""
    to_be_made(save_as)
    refuse_beside_search(until_starts, (save_as, against, horizon), like, within, budget, (workers, dask))
    horizon_s = seconds_of(horizon or HORIZON, "--horizon")
    asked = server_of(server, token, token_file, certificate, terminal)
    source = ForkSource(db, at, asked, manifests, base_config, plugins_dir, lenient)
    fork = source.fork(default_duration, terminal)
    given = {"--add-nodes": add_nodes, "--submit": submit, "--set": set_, "--scale": scale, "--cordon": cordon}
    given |= {"--drain": drain, "--remove-node": remove_node, "--delete": delete, "--config": config}
    changes, instead = (asked_for(each, lenient, terminal.warn) for each in (given, words_of(against)))
    if until_starts is not None:
        works = spread(workers, dask, plugins_dir)
        wanted = SearchOptions(until_starts, seconds_of(within, "--within"), budget, like or (), seed, works)
        return search(accepted(fork, changes), wanted, terminal)
    if not changes:
        raise UsageError("nothing is changed: name a change, such as --add-nodes 4:like=NODE or --submit job.yaml")
    with (
        terminal.progress("what if: seconds lived", int(2 * horizon_s)) as advance,
        another_process(len(fork.objects), plugins_dir) as beside,
        rarely(),
    ):
        lived = WholeSeconds(advance)
        found = what_if(fork, changes, horizon_s, against=instead, seed=seed, advance=lived, executor=beside)
    tell_left_out(found, terminal)
    keep(save_as, changed(fork, changes), horizon_s, seed)
    terminal.emit(found.result(), lambda console: show(console, found))
    return Exit.USAGE if terminal.errors else Exit.DONE if found.same else Exit.DIFFERS


def spread(workers: int, dask: str | None, plugins_dir: Path | None) -> Executors | None:
    """Return executors for the futures that a search will probably need; None for this process alone."""
    return None if workers == 1 and dask is None else executors(workers, dask, partial(prepare, plugins_dir))


def tell_left_out(found: FutureDifference, terminal: Terminal) -> None:
    """Name the objects that the api refuses."""
    for who, why in found.before.refused:
        terminal.error(f"{who} is left out: {why}")


def keep(file: Path | None, fork: Fork, horizon_s: float, seed: int) -> None:
    """Save the changed future as a journal, if requested."""
    if file is not None:
        save(fork, horizon_s, seed, file)


class WholeSeconds:
    """A bar that advances in whole seconds; each future begins at 0."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance, self._last = advance, 0

    def __call__(self, seconds: float) -> None:
        """Note the number of finished futures."""
        step = int(seconds) - self._last
        self._last = int(seconds)
        if step > 0:
            self._advance(step)
