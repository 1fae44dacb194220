# SPDX-License-Identifier: Apache-2.0
"""The tools: what an agent may ask, and the command that answers it.

A tool is a record of its arguments. Its schema, its reading and its errors follow from the annotations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from pumice.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MANIFEST: Final = "manifest.yaml"
CONFIG: Final = "scheduler.conf"


@dataclass(frozen=True, kw_only=True)
class AgentSource:
    """The cluster that is asked about: one of a journal, a server and manifests. All paths are absolute.

    `cycle`: the newest cycle of the journal. `gate`: a policy file with expectations.
    """

    db: Path | None = None
    cycle: int | None = None
    server: str | None = None
    certificate: Path | None = None
    manifests: Sequence[str] = ()
    config: Path | None = None
    plugins_dir: Path | None = None
    gate: Path | None = None

    def words(self, config: str = "--config") -> list[str]:
        """Return the options that name the cluster; `config`: what the command calls a configuration."""
        found = [f"--db={self.db}"] if self.db else []
        found += [f"--server={self.server}"] if self.server else []
        found += [f"--cacert={self.certificate}"] if self.certificate else []
        found += [f"--filename={each}" for each in self.manifests]
        found += [f"{config}={self.config}"] if self.config else []
        return [*found, *self.plugins()]

    def plugins(self) -> list[str]:
        """Return the option for plugins of the user."""
        return [f"--plugins-dir={self.plugins_dir}"] if self.plugins_dir else []

    def journal(self, instead: str) -> str:
        """Return the journal. Raises InputError, with what to do instead, where there is none."""
        if self.db is None:
            raise InputError(f"this needs a journal, and the cluster here is not one: {instead}")
        return str(self.db)


@dataclass(frozen=True)
class CommandLine:
    """`words` after `pumice`; `files`: texts that the command reads, by name."""

    words: list[str]
    files: dict[str, str] = field(default_factory=dict[str, str])


Name = Annotated[str, Meta(min_length=1, max_length=300, description="namespace/name, such as default/train.")]
Queue = Annotated[str, Meta(min_length=1, max_length=300, description="Name of a queue: it and those below it.")]
Explained = Literal["pod", "podgroup", "job", "deployment", "replicaset", "statefulset", "daemonset"]
Kind = Annotated[Explained, Meta(description="Kind of the object; job is a Volcano Job.")]
Duration = Annotated[str, Meta(max_length=20, description="A Go duration, such as 90s or 1h30m.")]
Text = Annotated[str, Meta(min_length=1, max_length=500_000)]
Manifest = Annotated[Text, Meta(description="Kubernetes manifests as YAML; several are parted by ---.")]
Config = Annotated[Text, Meta(description="A whole scheduler.conf of Volcano, as YAML.")]
Side = Annotated[str, Meta(max_length=500, description="Git revision or folder. Default: the policy file's own.")]
Changes = Annotated[list[Annotated[str, Meta(min_length=1, max_length=500)]], Meta(max_length=50)]


class AgentTool(msgspec.Struct, forbid_unknown_fields=True):
    """A question. `name` and `title` are for lists; `schemas`: the commands whose results it may return; `instead`:
    what to ask when it fails.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    schemas: ClassVar[tuple[str, ...]]
    instead: ClassVar[str]

    def command(self, source: AgentSource) -> CommandLine:
        """Return the command that answers the question. Raises InputError."""
        raise NotImplementedError

    def part(self) -> dict[str, int]:
        """Return how many entries of a list or mapping of the result are wanted, by its key."""
        return {}


class QueuesTool(AgentTool):
    """Lists the queues (allocated, deserved, capability, share) and the waiting jobs in the order in which the
    scheduler tries them, each with its reason.
    """

    name = "queues"
    title = "Queues and what waits in them"
    schemas = ("queue",)
    instead = "Without a queue it lists all of them."

    queue: Queue | None = None

    def command(self, source: AgentSource) -> CommandLine:
        """Return `pumice queue`."""
        return CommandLine(["queue", *source.words(), *([] if self.queue is None else ["--", self.queue])])


class WhoIsNextTool(QueuesTool):
    """Says which waiting jobs the scheduler tries next, in their order: position, what each waits for, and which job
    comes before it and why.
    """

    name = "who_is_next"
    title = "Who is next"
    instead = "Without a queue it looks at all of them; `queues` lists their names."

    first: Annotated[int, Meta(ge=1, le=200, description="How many jobs.")] = 10

    def part(self) -> dict[str, int]:
        """Return the number of waiting jobs, and no queue."""
        return {"waiting": self.first, "queues": 0}


class WhyPendingTool(AgentTool):
    """Explains why a job, pod or other workload waits, was placed where it is, or was evicted: a reason with a stable
    code, counts by node and by plugin.
    """

    name = "why_pending"
    title = "Why it waits"
    schemas = ("explain",)
    instead = "`who_is_next` lists what waits, with the names to ask about."

    object: Name
    kind: Kind = "job"
    cycle: Annotated[int, Meta(ge=1, description="A cycle of the journal. Default: the newest.")] | None = None

    def command(self, source: AgentSource) -> CommandLine:
        """Return `pumice explain` without advice."""
        at = [] if self.cycle is None else [f"--cycle={self.cycle}"]
        return CommandLine(["explain", *source.words(), *at, "--budget=0", "--", self.kind, self.object])


class WhatWouldHelpTool(AgentTool):
    """Searches for changes that let a waiting job or pod start, each tried: which pods to end, which node to add, which
    quota to raise, which request to lower.
    """

    name = "what_would_help"
    title = "What would help"
    schemas = ("explain",)
    instead = "`why_pending` gives the reason alone, sooner; `what_if` with `until_starts` searches longer."

    object: Name
    kind: Kind = "job"
    budget_s: Annotated[float, Meta(ge=0.1, le=30.0, description="Work to spend, in units of about a second.")] = 10.0

    def command(self, source: AgentSource) -> CommandLine:
        """Return `pumice explain` with a budget for advice."""
        words = ["explain", *source.words(), f"--budget={self.budget_s:g}", "--", self.kind, self.object]
        return CommandLine(words)


class WhatIfTool(AgentTool):
    """Compares two futures of the cluster on virtual time, as it is and with changes: which jobs start sooner or later,
    what is evicted, how use changes. With `until_starts`, searches for the smallest change that lets that job start.
    """

    name = "what_if"
    title = "What if"
    schemas = ("whatif",)
    instead = "A shorter `horizon` takes less time. `queues` and `who_is_next` give the names of queues and jobs."

    add_nodes: Annotated[Changes, Meta(description="N:like=NODE adds N nodes like this one.")] = []
    remove_node: Annotated[Changes, Meta(description="Names of nodes to remove.")] = []
    drain: Annotated[Changes, Meta(description="Names of nodes to cordon, whose pods are evicted.")] = []
    cordon: Annotated[Changes, Meta(description="Names of nodes that take no new pods.")] = []
    set: Annotated[Changes, Meta(description="KIND/NAME:PATH=VALUE, such as queue/q1:spec.weight=3.")] = []
    delete: Annotated[Changes, Meta(description="KIND/NAME or KIND/NAMESPACE/NAME.")] = []
    scale: Annotated[Changes, Meta(description="KIND/NAME[:TASK]=N.")] = []
    submit: Manifest | None = None
    config: Config | None = None
    horizon: Annotated[Duration, Meta(description="How far to look ahead; with until_starts, `within` counts.")] = "1h"
    until_starts: Name | None = None
    within: Annotated[Duration, Meta(description="With until_starts: within which time.")] = "1m"

    def command(self, source: AgentSource) -> CommandLine:
        """Return `pumice whatif`."""
        words, files = ["whatif", *source.words("--base-config")], dict[str, str]()
        for option in ("add_nodes", "remove_node", "drain", "cordon", "set", "delete", "scale"):
            words += [f"--{option.replace('_', '-')}={each}" for each in getattr(self, option)]
        if self.submit is not None:
            words, files[MANIFEST] = [*words, f"--submit={MANIFEST}"], self.submit
        if self.config is not None:
            words, files[CONFIG] = [*words, f"--config={CONFIG}"], self.config
        if self.until_starts is None:
            return CommandLine([*words, f"--horizon={self.horizon}"], files)
        search = [f"--until-starts={self.until_starts}", f"--within={self.within}", "--budget=30"]
        return CommandLine([*words, *search], files)


class EtaTool(AgentTool):
    """Estimates when waiting jobs start, as a range over sampled futures, from how long similar pods ran."""

    name = "eta"
    title = "When it starts"
    schemas = ("eta",)
    instead = "Fewer `samples` or a shorter `horizon` take less time; `why_pending` says what a job waits for."

    jobs: Annotated[list[Name], Meta(max_length=50, description="Only these jobs.")] = []
    horizon: Duration = "24h"
    samples: Annotated[int, Meta(ge=1, le=100, description="Number of sampled futures.")] = 20

    def command(self, source: AgentSource) -> CommandLine:
        """Return `pumice eta`."""
        told = [f"--horizon={self.horizon}", f"--samples={self.samples}"]
        return CommandLine(["eta", *source.words(), *told, *(["--", *self.jobs] if self.jobs else [])])


class DryRunTool(AgentTool):
    """Tries manifests on the cluster without changing it: whether the API server takes them, where the pods would go in
    the next cycle, what would be evicted, and why pods would wait.
    """

    name = "dry_run"
    title = "Dry run of a manifest"
    schemas = ("decide", "whatif")
    instead = "`what_if` with `submit` lives through the time after it."

    manifest: Manifest
    cycles: Annotated[int, Meta(ge=1, le=20, description="How many cycles to decide.")] = 2

    def command(self, source: AgentSource) -> CommandLine:
        """Return `pumice decide`, or for a server, which decides by itself, `pumice whatif` over ten minutes."""
        files = {MANIFEST: self.manifest}
        if source.server is not None:
            words = ["whatif", *source.words("--base-config"), f"--submit={MANIFEST}", "--horizon=10m"]
            return CommandLine(words, files)
        at = [] if source.cycle is None else [f"--cycle={source.cycle}"]
        words = ["decide", *source.words(), *at, f"--cycles={self.cycles}", f"--filename={MANIFEST}"]
        return CommandLine(words, files)


class StoryTool(AgentTool):
    """Tells the story of a job or pod, record by record: created, admitted, bound, evicted, ended, each with its time
    and cause.
    """

    name = "story"
    title = "The story of a job"
    schemas = ("journal",)
    instead = "`queues` lists the jobs that wait; a name is namespace/name."

    object: Name

    def command(self, source: AgentSource) -> CommandLine:
        """Return `pumice journal --about`. Raises InputError."""
        file = source.journal("start `pumice mcp --db FILE` over the journal of the run, or ask `why_pending` here")
        return CommandLine(["journal", f"--about={self.object}", "--", file])


class CompareConfigurationsTool(AgentTool):
    """Compares the cluster's scheduler configuration with another one: over a journal, the whole record is lived
    through again; over a server or manifests, both futures are. Says which jobs start sooner or later, and what is
    evicted.
    """

    name = "compare_configurations"
    title = "Two configurations"
    schemas = ("replay", "whatif")
    instead = "`what_if` with `config` and a short `horizon` looks ahead only, and takes less time."

    config: Config
    horizon: Annotated[Duration, Meta(description="How far to look ahead, over a server or manifests.")] = "1h"

    def command(self, source: AgentSource) -> CommandLine:
        """Return `pumice replay --config`, or `pumice whatif --config`."""
        files = {CONFIG: self.config}
        if source.db is not None:
            words = ["replay", f"--config={CONFIG}", "--workers=1", *source.plugins(), "--", str(source.db)]
            return CommandLine(words, files)
        words = ["whatif", *source.words("--base-config"), f"--config={CONFIG}", f"--horizon={self.horizon}"]
        return CommandLine(words, files)


class GateTool(AgentTool):
    """Judges a change of the cluster's policy by the expectations in the policy file: which of them hold before and
    fail after it, and what becomes better or worse.
    """

    name = "gate"
    title = "Is a change good"
    schemas = ("gate",)
    instead = "`compare_configurations` and `what_if` need no policy file."

    base: Side | None = None
    head: Side | None = None

    def command(self, source: AgentSource) -> CommandLine:
        """Return `pumice gate`, whose runs are not kept. Raises InputError."""
        if source.gate is None:
            raise InputError("no policy file was named: start `pumice mcp --gate POLICY`")
        sides = {"--base": self.base, "--head": self.head}
        said = [f"{option}={value}" for option, value in sides.items() if value is not None]
        return CommandLine(["gate", *said, "--workers=1", "--results=runs", *source.plugins(), "--", str(source.gate)])


TOOLS: Final[dict[str, type[AgentTool]]] = {
    each.name: each
    for each in (
        QueuesTool,
        WhoIsNextTool,
        WhyPendingTool,
        WhatWouldHelpTool,
        WhatIfTool,
        EtaTool,
        DryRunTool,
        StoryTool,
        CompareConfigurationsTool,
        GateTool,
    )
}
"""By name, in the order in which they are listed."""


def read_question(name: str, arguments: dict[str, object]) -> AgentTool:
    """Return the question. Raises InputError, which says what was expected."""
    if name not in TOOLS:
        raise InputError(f"no tool {name!r}; there are {', '.join(TOOLS)}")
    try:
        return msgspec.convert(arguments, TOOLS[name])
    except msgspec.ValidationError as error:
        raise InputError(f"{name}: {error}; known: {', '.join(TOOLS[name].__struct_fields__)}") from error
