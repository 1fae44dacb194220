# SPDX-License-Identifier: Apache-2.0
"""The types of the mailboxes that actors send to.

An actor never imports another one; it takes the ports named here in its constructor, and `actors.system.system` alone
decides whose they are.
"""

from __future__ import annotations

from pumice.actors.runtime.mailbox import Mailbox
from pumice.core.messages import boards, commands, events, questions, replies
from pumice.core.messages.commands import (
    BindWorkerCommand,
    CyclesRun,
    EvictWorkerCommand,
    ProcessMeasured,
    RecorderCommand,
    RunnerCommand,
    StatusWriterCommand,
    SupervisorCommand,
)
from pumice.core.messages.events import Mirrored, ReadMirrored
from pumice.core.messages.queue_tables import QueuesMeasured

ApiPort = Mailbox[commands.ApiRequest, replies.ApiReply]
RecorderPort = Mailbox[RecorderCommand, replies.Appended]
CacheMessage = commands.CacheCommand | events.CacheEvent
CacheReply = replies.SnapshotTaken | replies.Assumed | replies.ViewChecked | boards.BoardRead | boards.ResidentsRead
CachePort = Mailbox[CacheMessage, CacheReply]
RunnerPort = Mailbox[RunnerCommand, replies.Done | CyclesRun]
ActionPort = Mailbox[commands.ActionCommand, replies.ActionDone | replies.ActionFailed]
DryRunPort = Mailbox[commands.DryRunCommand, replies.Candidates | replies.DryRunFailed]
BindPort = Mailbox[BindWorkerCommand, replies.Done]
EvictPort = Mailbox[EvictWorkerCommand, replies.Done]
StatusPort = Mailbox[StatusWriterCommand, replies.Done]
ArrivalsPort = Mailbox[commands.Announce, replies.Done]
OutsidePort = Mailbox[questions.AskOutside, questions.OutsideAnswered]
PokePort = Mailbox[commands.Poke, replies.Done]
MirrorPort = Mailbox[commands.Poke | ReadMirrored, replies.Done | Mirrored]
MetricsMessage = commands.MetricsCommand | events.MetricsEvent | QueuesMeasured
MetricsReply = replies.Exposition | boards.RecentRead
MetricsPort = Mailbox[MetricsMessage, MetricsReply]
SupervisorPort = Mailbox[SupervisorCommand, ProcessMeasured]
