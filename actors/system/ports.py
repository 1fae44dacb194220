"""The types of the mailboxes that actors send to.

An actor never imports another one; it takes the ports named here in its constructor, and `actors.system.system` alone
decides whose they are.
"""

from __future__ import annotations

from pumice.actors.runtime.mailbox import Mailbox
from pumice.core.messages import (
    boards,
    commands,
    cycles,
    events,
    orders,
    questions,
    recording,
    replies,
    shadow,
    supervision,
)
from pumice.core.messages.queue_tables import QueuesMeasured

ApiPort = Mailbox[commands.ApiRequest, replies.ApiReply]
RecorderPort = Mailbox[recording.RecorderCommand, replies.Appended]
CacheMessage = commands.CacheCommand | events.CacheEvent
CacheReply = replies.SnapshotTaken | replies.Assumed | replies.ViewChecked | boards.BoardRead | boards.ResidentsRead
CachePort = Mailbox[CacheMessage, CacheReply]
RunnerPort = Mailbox[cycles.RunnerCommand, replies.Done | cycles.CyclesRun]
ActionPort = Mailbox[commands.ActionCommand, replies.ActionDone | replies.ActionFailed]
DryRunPort = Mailbox[commands.DryRunCommand, replies.Candidates | replies.DryRunFailed]
BindPort = Mailbox[orders.BindWorkerCommand, replies.Done]
EvictPort = Mailbox[orders.EvictWorkerCommand, replies.Done]
StatusPort = Mailbox[orders.StatusWriterCommand, replies.Done]
ArrivalsPort = Mailbox[commands.Announce, replies.Done]
OutsidePort = Mailbox[questions.AskOutside, questions.OutsideAnswered]
PokePort = Mailbox[commands.Poke, replies.Done]
MirrorPort = Mailbox[commands.Poke | shadow.ReadMirrored, replies.Done | shadow.Mirrored]
MetricsMessage = commands.MetricsCommand | events.MetricsEvent | QueuesMeasured
MetricsReply = replies.Exposition | boards.RecentRead
MetricsPort = Mailbox[MetricsMessage, MetricsReply]
SupervisorPort = Mailbox[supervision.SupervisorCommand, supervision.ProcessMeasured]
