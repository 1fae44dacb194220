# SPDX-License-Identifier: Apache-2.0
"""`pumice run`: the whole system in one process, until a signal stops it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import anyio
import typer
from rich.live import Live

from pumice.actors.gateway.settings import GatewaySettings
from pumice.actors.outside.over_http import over_http, standing_still
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.cli.exits import Exit, UsageError, guarded, interrupts
from pumice.cli.inputs import load_config, warn_of_token
from pumice.cli.manifests import load_manifests, newest_of
from pumice.cli.options import LogLevel, Manifests, Output, Quiet
from pumice.cli.scheduling import refuse_context, schedule_there
from pumice.cli.tables.summary import show_storm, show_summary, summary_table
from pumice.cli.terminal import Terminal
from pumice.cluster.faults.profiles import PACKAGED as FOR_CLIENTS
from pumice.config.durations import parse_duration
from pumice.config.errors import UnknownNameError
from pumice.config.settings import ProcessSettings, config_map_of, process_settings, read_process_settings
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object, parse_time
from pumice.load.manifests import Loaded, still_running
from pumice.load.remarks import read_as, said_of_strangers
from pumice.plugins.loader import changed_plugins, identities
from pumice.proof.storm.live import LiveStorm, live_rates, simulated_only
from pumice.proof.storm.script.profiles import PACKAGED, profile, profiles
from pumice.questions.adviser.waiting_jobs import WaitRow, waits_at_the_end
from pumice.questions.oneshot.left_out import unserved
from pumice.runtime.arrivals import arriving, hastened
from pumice.runtime.journals import looks_like_journal, retention_of
from pumice.runtime.main_job import RunOutcome, RunPlan, Watching, run_plan
from pumice.runtime.serving import export_line, gateway_settings, split_faults
from pumice.runtime.standing import named
from pumice.runtime.summary import RunResult
from pumice.runtime.waiting import LeftWaiting, parse_until

LIVE_PERIOD_S: Final = 0.5
EARLIEST_S: Final = 0.0
LATEST_S: Final = 7_258_118_400.0
"""2200: a run has centuries before the last year that a time can be written in."""
MOST_WAITING: Final = 20
"""Number of what is left pending that are listed."""

SEVERAL: Final = (
    f", or several joined by +: {', '.join(PACKAGED)}; with --http, for its clients: {', '.join(FOR_CLIENTS)}, or a"
    " file of rules"
)

METAVARS: Final = {
    "authorization": "rbac|none",
    "client_bytes": "SIZE",
    "client_ca_file": "PEM",
    "config": "CONF",
    "db": "FILE",
    "default_duration": "D",
    "event_ttl": "D",
    "faults": "PROFILE",
    "http": "HOST:PORT",
    "keep": "7d|N",
    "keep_bytes": "SIZE",
    "keep_events": "N",
    "leader_elect": "true|false",
    "max_object_bytes": "SIZE",
    "max_objects": "N",
    "log_level": "LEVEL",
    "plugins_dir": "FOLDER",
    "profiles": "FILE",
    "seed": "N",
    "segments": "N|1d",
    "speedup": "N",
    "start": "TIME",
    "time": "CLOCK",
    "tls_cert": "PEM",
    "tls_key": "PEM",
}
"""How the values of settings are called in the help, where the last word of the option says too little."""
_SETTINGS: Final = process_settings()


def _option(name: str, more: str = "") -> Any:
    """Return a process setting as an option; the environment and the defaults are merged by
    `pumice.config.settings`."""
    setting = _SETTINGS[name]
    expected = "" if setting.expected == "a text" else f" ({setting.expected})"
    default = "" if setting.default == "none" else f"; default: {setting.default}"
    return typer.Option(
        setting.flag,
        metavar=METAVARS.get(name) or setting.flag.rpartition("-")[2].upper(),
        help=f"{setting.description[:-1]}{expected}{more}. [{setting.variable}{default}]",
        show_default=False,
    )


def _switch(name: str) -> Any:
    """Return a process setting as a switch without an opposite flag."""
    setting = _SETTINGS[name]
    return typer.Option(setting.flag, help=f"{setting.description} [{setting.variable}]", show_default=False)


OneWorker = Annotated[
    int, typer.Option("--workers", metavar="N", min=1, max=1, help="Number of processes: a run is one.")
]


@guarded
def run(
    manifests: Manifests = None,
    config: Annotated[str | None, _option("config")] = None,
    db: Annotated[str | None, _option("db")] = None,
    backend: Annotated[str | None, _option("backend")] = None,
    time: Annotated[str | None, _option("time")] = None,
    start: Annotated[str | None, _option("start")] = None,
    default_duration: Annotated[str | None, _option("default_duration")] = None,
    speedup: Annotated[int | None, _option("speedup")] = None,
    until: Annotated[str | None, _option("until")] = None,
    seed: Annotated[int | None, _option("seed")] = None,
    keep: Annotated[str | None, _option("keep")] = None,
    keep_events: Annotated[int | None, _option("keep_events")] = None,
    segments: Annotated[str | None, _option("segments")] = None,
    keep_bytes: Annotated[str | None, _option("keep_bytes")] = None,
    event_ttl: Annotated[str | None, _option("event_ttl")] = None,
    plugins_dir: Annotated[str | None, _option("plugins_dir")] = None,
    faults: Annotated[str | None, _option("faults", SEVERAL)] = None,
    profiles: Annotated[str | None, _option("profiles")] = None,
    http: Annotated[str | None, _option("http")] = None,
    token: Annotated[str | None, _option("token")] = None,
    token_file: Annotated[str | None, _option("token_file")] = None,
    tls_cert: Annotated[str | None, _option("tls_cert")] = None,
    tls_key: Annotated[str | None, _option("tls_key")] = None,
    authorization: Annotated[str | None, _option("authorization")] = None,
    token_auth_file: Annotated[str | None, _option("token_auth_file")] = None,
    client_ca_file: Annotated[str | None, _option("client_ca_file")] = None,
    service_account_key_file: Annotated[str | None, _option("service_account_key_file")] = None,
    client_bytes: Annotated[str | None, _option("client_bytes")] = None,
    max_objects: Annotated[int | None, _option("max_objects")] = None,
    max_object_bytes: Annotated[str | None, _option("max_object_bytes")] = None,
    no_scheduler: Annotated[bool | None, _switch("no_scheduler")] = None,
    no_default_scheduler: Annotated[bool | None, _switch("no_default_scheduler")] = None,
    no_controllers: Annotated[bool | None, _switch("no_controllers")] = None,
    no_agents: Annotated[bool | None, _switch("no_agents")] = None,
    check_cycles: Annotated[bool | None, _switch("check_cycles")] = None,
    workers: OneWorker = 1,
    output: Output = None,
    quiet: Quiet = False,
    log_level: Annotated[str | None, _option("log_level")] = None,
    lenient: Annotated[bool | None, _switch("lenient")] = None,
    kubeconfig: Annotated[str | None, _option("kubeconfig")] = None,
    context: Annotated[str | None, _option("context")] = None,
    kube_api_qps: Annotated[str | None, _option("kube_api_qps")] = None,
    kube_api_burst: Annotated[str | None, _option("kube_api_burst")] = None,
    leader_elect: Annotated[str | None, _option("leader_elect")] = None,
    leader_elect_lease_duration: Annotated[str | None, _option("leader_elect_lease_duration")] = None,
    leader_elect_renew_deadline: Annotated[str | None, _option("leader_elect_renew_deadline")] = None,
    leader_elect_retry_period: Annotated[str | None, _option("leader_elect_retry_period")] = None,
    leader_elect_resource_name: Annotated[str | None, _option("leader_elect_resource_name")] = None,
    leader_elect_resource_namespace: Annotated[str | None, _option("leader_elect_resource_namespace")] = None,
) -> int:
    """Run until a signal; 1 when a storm broke an invariant, else 130 after Ctrl-C, 2 when input was refused."""
    flags: dict[str, object] = {name: given for name, given in locals().items() if name in _SETTINGS}
    settings = read_process_settings(flags, os.environ)
    terminal = Terminal(output, quiet, LogLevel(settings.log_level))
    say_first(settings, token, terminal)
    if settings.kubeconfig is not None:
        return schedule_there(settings, {**flags, "manifests": manifests}, terminal)
    refuse_context(settings.context)
    return run_here(settings, backend or os.environ.get("PUMICE_BACKEND"), manifests, terminal)


def run_here(
    settings: ProcessSettings, backend: str | None, manifests: Sequence[str] | None, terminal: Terminal
) -> Exit:
    """Run with the built-in API server. Raises UsageError."""
    controllers = not settings.no_controllers
    loaded = load_manifests(manifests, terminal, controllers=controllers) if manifests else Loaded()
    if manifests and loaded.problems and not loaded.objects:
        raise UsageError("no object of the input could be used")
    if settings.http is None:
        for sentence in unserved(loaded.objects, stock=settings.config is None and not settings.no_scheduler):
            terminal.warn(sentence)
    plan = plan_of(settings, backend, loaded, terminal, bare=not manifests)
    with closing(plan):
        return carry_out(plan, loaded, terminal, settings.plugins_dir)


def carry_out(plan: RunPlan, loaded: Loaded, terminal: Terminal, plugins_dir: str | None) -> Exit:
    """Run the system, and report the result; for jobs that are left waiting, the reasons as explain gives them."""
    try:
        outcome = run_plan(plan, ProgressWatch(terminal, loaded, live=not plan.virtual))
    except BaseException as error:  # a second Ctrl-C, or what the process died of, hides nothing
        found = plan.storm.found() if plan.storm is not None else None
        if found is None or not found.violations:
            raise
        terminal.emit(found, partial(show_storm, found.faults_injected, found.violations))
        if not interrupts(error):
            raise
        return Exit.DIFFERS
    told = outcome.summary
    told.input = {**read_as(loaded), "refused": len(loaded.problems) + len(outcome.refused)}
    standing = list[WaitRow]()
    left = outcome.waiting.why or outcome.waiting.strangers
    if left and plan.settings.scheduler and not outcome.interrupted:
        standing = waits_at_the_end(plan.db, plugins_dir)
    if standing:
        told.waiting = {each.job: each.told() for each in standing}
    terminal.emit(told, partial(show_summary, told))
    say_standing(terminal, standing)
    say_waiting(terminal, outcome.waiting)
    if outcome.continued and not outcome.interrupted:
        say_done(terminal, told, plan.db)
    if told.violations:
        return Exit.DIFFERS
    if outcome.interrupted:
        return Exit.INTERRUPTED
    return Exit.USAGE if loaded.problems or outcome.refused else Exit.DONE


def say_done(terminal: Terminal, summary: RunResult, db: Path) -> None:
    """Print on stderr that a continued journal had no work left, and how to start afresh."""
    if not summary.pods_per_s and not summary.pods.pending and not summary.pods.running:
        terminal.say(
            f"all work of {db} was done before: name another journal (--db FILE) or remove {db} to start afresh"
        )


def say_first(settings: ProcessSettings, token: str | None, terminal: Terminal) -> None:
    """Print the remarks that are known before any input is read."""
    path = Path(settings.db)
    if path.exists():  # a process that was killed right after its start leaves an empty file
        if not path.stat().st_size:
            terminal.say(f"{path} is empty: a new journal begins")
        elif looks_like_journal(path):
            terminal.say(f"continuing the journal {path}")
    warn_of_token(token, terminal)


def plan_of(
    settings: ProcessSettings, backend: str | None, loaded: Loaded, terminal: Terminal, *, bare: bool
) -> RunPlan:
    """Return the settings checked against each other, and the configuration tried before anything is opened.

    `backend` is the user's choice, None when it is only the default.
    """
    virtual = settings.time == "virtual"
    if virtual and backend == "asyncio":
        raise UsageError("virtual time is trio's clock; leave --backend out or say trio", path="--time")
    retention = retention_of(settings)
    until = parse_until(settings.until)
    if settings.no_scheduler and until.kind == "cycles":
        raise UsageError("needs a scheduler: without one no cycle runs", path="--until")
    config_map = config_map_of(settings.config)
    if config_map is not None and settings.no_scheduler:
        raise UsageError("needs a scheduler: nothing else follows a configuration", path="--config")
    path = Path(settings.config) if settings.config and config_map is None else None
    plugins = Path(settings.plugins_dir) if settings.plugins_dir else None
    load_config(path, settings.lenient, terminal, plugins=plugins)
    stormed, _ = split_faults(settings.faults)
    storm = storm_of(stormed, settings, terminal) if stormed else None
    return RunPlan(
        objects=hastened(still_running(loaded.objects), settings.speedup),
        bare=bare,
        db=Path(settings.db),
        until=until,
        backend=settings.backend,
        virtual=virtual,
        start=start_of(settings),
        shown=shown_by(loaded.objects) if virtual else 0.0,
        settings=SystemSettings(
            config_path=path,
            config_map=config_map,
            lenient=settings.lenient,
            seed=settings.seed,
            default_duration_s=parse_duration(settings.default_duration),
            retention=retention,
            event_ttl_s=parse_duration(settings.event_ttl),
            gateway=gateway_settings(settings),  # after all that may be refused: it listens from here on
            scheduler=not settings.no_scheduler,
            default_scheduler=not settings.no_default_scheduler,
            controllers=not settings.no_controllers,
            agents=not settings.no_agents,
            check_view=settings.check_cycles,
            user_plugins=identities(),
            changed_plugins=changed_plugins,
            post=standing_still if virtual else over_http,
        ),
        storm=storm,
    )


def start_of(settings: ProcessSettings) -> float | None:
    """Return when the clock begins, in seconds since the epoch. Raises UsageError for a start that no clock can
    have."""
    if settings.start is None:
        return None
    if settings.time != "virtual":
        raise UsageError("only virtual time begins when one likes; add --time virtual", path="--start")
    try:
        start = parse_time(settings.start)
    except ValueError as error:
        raise UsageError(f"not a valid time: {settings.start}: {error}", path="--start") from error
    if not EARLIEST_S < start < LATEST_S:
        raise UsageError(f"expected a time from 1970 to 2199, was {settings.start}", path="--start")
    return start


def shown_by(objects: Sequence[Object]) -> float:
    """Return the newest time in objects that exist from the beginning (seconds since the epoch), 0.0 for none: the
    clock must have come so far, or they would be in the future.
    """
    newest = newest_of(obj for obj in objects if arriving(obj) is None)
    return newest if newest < LATEST_S else 0.0


def storm_of(names: str, settings: ProcessSettings, terminal: Terminal) -> LiveStorm:
    """Return a profile's faults; UsageError when none can happen here, a warning when only some can."""
    own = Path(settings.profiles) if settings.profiles else None
    known = profiles(own)
    for name in names.split("+"):
        if name not in known:
            raise UnknownNameError("fault profile", name, (*known, *FOR_CLIENTS), path="--faults")
    chosen = profile(names, own)
    if absent := ", ".join(simulated_only(chosen)):
        if not live_rates(chosen):
            problem = f"{names} has nothing for the real clock, in simulation only: {absent} (pumice stress)"
            raise UsageError(problem, path="--faults")
        terminal.warn(f"--faults {names}: in simulation only: {absent}")
    return LiveStorm(names, settings.seed, chosen=chosen)


class ProgressWatch(Watching):
    """Reports events on stderr, and shows a live table on a terminal."""

    def __init__(self, terminal: Terminal, loaded: Loaded, *, live: bool) -> None:
        self._terminal = terminal
        self._loaded = loaded
        self._live = live and terminal.tables and terminal.out.is_terminal and not terminal.quiet

    def serving(self, gateway: GatewaySettings, kubeconfig: Path) -> None:
        line = export_line(kubeconfig)
        self._terminal.say(f"serving Kubernetes' API on {gateway.url}")
        if self._terminal.tables:
            self._terminal.out.print(line)
        else:
            self._terminal.err.print(line)

    def refused(self, obj: Object, answer: Refused) -> None:
        place = self._loaded.place_of(obj)
        self._terminal.error(": ".join(part for part in (place, named(obj), answer.message) if part))

    def submitted(self, outcome: RunOutcome) -> None:
        for what in outcome.added:
            self._terminal.say(f"added {what}")
        if outcome.known:
            self._terminal.say(f"{outcome.known} objects were already there and were left as they are")
        for name in outcome.differing[:MOST_WAITING]:
            self._terminal.warn(f"{name} was already there with another spec, which stays")
        if len(outcome.differing) > MOST_WAITING:
            self._terminal.warn(f"and {len(outcome.differing) - MOST_WAITING} more with another spec")

    async def follow(self, system: System) -> None:
        if not self._live:
            await anyio.sleep_forever()
        with Live(console=self._terminal.out, transient=True, auto_refresh=False) as live:
            while True:
                live.update(summary_table(await system.summary()), refresh=True)
                await anyio.sleep(LIVE_PERIOD_S)


def say_standing(terminal: Terminal, standing: Sequence[WaitRow]) -> None:
    """Print on stderr the jobs that wait, in the order in which they are tried, each with its reason."""
    if standing:
        terminal.say(f"{len(standing)} job{'s wait' if len(standing) > 1 else ' waits'}:")
    for each in standing[:MOST_WAITING]:
        terminal.say(f"  {each.job} ({each.wait.code}): {each.wait.sentence}")
    if len(standing) > MOST_WAITING:
        terminal.say(f"  and {len(standing) - MOST_WAITING} more (pumice queue)")


def say_waiting(terminal: Terminal, waiting: LeftWaiting) -> None:
    """Print on stderr the first jobs that are left pending, with the reasons; and the schedulers that do not
    run here.
    """
    if waiting.why:
        terminal.say(f"{len(waiting.why)} pending:")
    for name, why in list(waiting.why.items())[:MOST_WAITING]:
        terminal.say(f"  {name}: {why}")
    if len(waiting.why) > MOST_WAITING:
        terminal.say(f"  and {len(waiting.why) - MOST_WAITING} more")
    for scheduler, count in sorted(waiting.strangers.items()):
        terminal.warn(said_of_strangers(scheduler, count))
