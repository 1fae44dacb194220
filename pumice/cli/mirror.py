# SPDX-License-Identifier: Apache-2.0
"""`pumice mirror`: a real cluster followed into a journal, which every other command reads."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
from msgspec.structs import asdict

from pumice.actors.real_clusters.mirror.redaction import PseudonymFile
from pumice.actors.real_clusters.mirror.settings import MirrorSettings, ShadowSettings
from pumice.actors.real_clusters.remote.access import in_cluster, proxy_of
from pumice.actors.scheduling.config_source import digest_of
from pumice.actors.system.settings import SystemSettings, mirrored
from pumice.cli.exits import Exit, UsageError, guarded
from pumice.cli.inputs import load_config
from pumice.cli.options import Lenient, LogLevel, Output, Quiet
from pumice.cli.scheduling import refuse_context
from pumice.cli.tables.summary import show_mirrored
from pumice.cli.terminal import Terminal
from pumice.config.kubeconfig import ClusterAccess, read_kubeconfig
from pumice.config.load import read_text
from pumice.config.schema import SchedulerConfig
from pumice.config.settings import CHARTS, ProcessSettings, config_map_of, read_process_settings
from pumice.plugins.loader import identities
from pumice.runtime.journals import looks_like_journal, retention_of
from pumice.runtime.mirroring import MirrorPlan, mirror_plan
from pumice.runtime.serving import gateway_settings
from pumice.runtime.summary import MirrorResult
from pumice.runtime.waiting import parse_until

SHADOW_LOG: Final = "pumice.actors.real_clusters.mirror.shadow"

Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="Kubeconfig of the cluster. Default: the cluster in which this process is a pod.",
        envvar="KUBECONFIG",
        show_default=False,
    ),
]
Context = Annotated[
    str, typer.Option("--context", metavar="NAME", help="Context of the kubeconfig. Default: its current context.")
]
Db = Annotated[
    str | None,
    typer.Option("--db", metavar="FILE", help="Journal to write, made or continued. [PUMICE_DB; default: ./pumice.db]"),
]
OfCluster = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="CONF",
        help="The configuration of the cluster's Volcano: a file, or configmap:NAMESPACE/NAME, followed."
        f" Default: {CHARTS.said}. With --shadow a file is another configuration to decide by.",
    ),
]
UntilWhen = Annotated[str | None, typer.Option("--until", metavar="30s", help="When to stop. Default: on Ctrl-C.")]
WithShadow = Annotated[
    bool,
    typer.Option(
        "--shadow",
        help="Decide every cycle here too, from the same state, and say where the cluster's scheduler did otherwise.",
    ),
]
Redact = Annotated[
    bool,
    typer.Option(
        "--redact", help="Put pseudonyms in the place of names; which, stands in FILE.names beside the journal."
    ),
]
Keep = Annotated[
    str | None, typer.Option("--keep", metavar="7d", help="How much of the journal to keep at least. Default: all.")
]
Segments = Annotated[
    str | None,
    typer.Option(
        "--segments", metavar="N|1d", help="How much goes into one segment, a file beside the journal. Default: none."
    ),
]
KeepBytes = Annotated[
    str | None,
    typer.Option("--keep-bytes", metavar="SIZE", help="Bytes that the journal and its segments may take together."),
]
Http = Annotated[
    str | None,
    typer.Option(
        "--http", metavar="HOST:PORT", help="Serve the copy, read only, to the page and kubectl. [PUMICE_HTTP]"
    ),
]
TokenFile = Annotated[
    str | None,
    typer.Option("--token-file", metavar="FILE", help="File that holds the token of --http. [PUMICE_TOKEN_FILE]"),
]
TlsCert = Annotated[
    str | None,
    typer.Option("--tls-cert", metavar="PEM", help="Certificate of --http, which makes it HTTPS. [PUMICE_TLS_CERT]"),
]
TlsKey = Annotated[
    str | None, typer.Option("--tls-key", metavar="PEM", help="Key of the certificate. [PUMICE_TLS_KEY]")
]
Backend = Annotated[
    str | None,
    typer.Option("--backend", metavar="asyncio|trio", help="The event loop. [PUMICE_BACKEND; default: asyncio]"),
]
LeastLogged = Annotated[
    str | None,
    typer.Option(
        "--log-level",
        metavar="debug|info|warning|error",
        help="Least severe messages to log. [PUMICE_LOG_LEVEL; default: warning]",
    ),
]


@guarded
def mirror(
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    db: Db = None,
    config: OfCluster = None,
    shadow: WithShadow = False,
    redact: Redact = False,
    until: UntilWhen = None,
    keep: Keep = None,
    segments: Segments = None,
    keep_bytes: KeepBytes = None,
    http: Http = None,
    token_file: TokenFile = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    backend: Backend = None,
    output: Output = None,
    quiet: Quiet = False,
    log_level: LeastLogged = None,
    lenient: Lenient = False,
) -> int:
    """Follow a cluster without writing to it. Exit code 130 after Ctrl-C, with a journal that the next start
    continues.
    """
    flags: dict[str, object] = {
        "db": db, "config": config, "until": until, "keep": keep, "backend": backend, "log_level": log_level,
        "segments": segments, "keep_bytes": keep_bytes,
        "http": http, "token_file": token_file, "tls_cert": tls_cert, "tls_key": tls_key,
    }  # fmt: skip
    settings = read_process_settings(flags, os.environ)
    terminal = Terminal(output, quiet, LogLevel(settings.log_level))
    access = _access(kubeconfig, context)
    proxy_of(access)  # what is wrong with it is said before anything begins
    plan = _plan(settings, access, terminal, shadow=shadow, redact=redact, lenient=lenient)
    path = Path(settings.db)
    if looks_like_journal(path):
        terminal.say(f"continuing the journal {path}")
    terminal.say(f"mirroring {access.server}; nothing is written there")
    if plan.settings.gateway is not None:
        terminal.say(f"serving the copy on {plan.settings.gateway.url}, to be read only")
    if shadow and not quiet:
        logging.getLogger(SHADOW_LOG).setLevel(logging.INFO)  # that is what was asked for
    outcome = mirror_plan(plan)
    found = MirrorResult(**asdict(outcome.summary), db=str(outcome.db))
    terminal.emit(found, partial(show_mirrored, found))
    outcome.demand_seen()
    return Exit.INTERRUPTED if outcome.interrupted else Exit.DONE


def _access(kubeconfig: Path | None, context: str) -> ClusterAccess:
    if kubeconfig is not None and os.pathsep in str(kubeconfig) and not kubeconfig.exists():
        problem = f"{kubeconfig} are several files: kubectl config view --flatten makes one of them"
        raise UsageError(problem, path="--kubeconfig")
    if kubeconfig is not None:
        return read_kubeconfig(kubeconfig, context)
    refuse_context(context)
    return in_cluster()


def _plan(
    settings: ProcessSettings,
    access: ClusterAccess,
    terminal: Terminal,
    *,
    shadow: bool,
    redact: bool,
    lenient: bool,
) -> MirrorPlan:
    until = parse_until(settings.until)
    if until.kind in ("idle", "cycles"):
        raise UsageError("a real cluster is never known to be idle: name a time, such as 30s", path="--until")
    config_map = config_map_of(settings.config)
    path = Path(settings.config) if settings.config and config_map is None else None
    config = load_config(path, lenient, terminal)
    other = _other(path, config) if shadow and path is not None else ShadowSettings()
    names = _names(Path(settings.db), redact=redact)
    gateway = gateway_settings(settings)  # after all that may be refused: it listens from here on
    copied = SystemSettings(
        config_path=None if shadow else path,
        retention=retention_of(settings),
        user_plugins=identities(),
        gateway=None if gateway is None else replace(gateway, reads_only=True),
    )
    mirrored_from = MirrorSettings(
        access, config_map or CHARTS, shadow=other if shadow else None, names=names if redact else None
    )
    return MirrorPlan(mirrored(mirrored_from, copied), Path(settings.db), until, settings.backend)


def _other(path: Path, config: SchedulerConfig) -> ShadowSettings:
    """Return the configuration file that replaces the cluster's own."""
    return ShadowSettings(config, str(path), digest_of(read_text(path)))


def _names(db: Path, *, redact: bool) -> Path:
    """Return the file with the pseudonyms of a journal, which goes on as it began: with them or without."""
    names, began = db.with_name(f"{db.name}.names"), looks_like_journal(db)
    if redact and began and not names.exists():
        raise UsageError(f"{db} holds names, or {names} is gone: begin another journal", path="--redact")
    if not redact and names.exists():
        raise UsageError(f"{db} holds pseudonyms, as {names} says: go on with --redact", path="--db")
    if redact:
        PseudonymFile(names)  # what is wrong with it is said before anything begins
    return names
