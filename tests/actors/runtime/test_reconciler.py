"""The shell around a machine, with a machine that only counts; and the real ones end to end."""

from collections.abc import Sequence

import anyio
import pytest

from pumice.actors.runtime.clock import RealClock, VirtualClock
from pumice.actors.runtime.mailbox import Mailbox, expected
from pumice.actors.runtime.reconciler import TOLD, Reconciler
from pumice.actors.system.ports import PokePort
from pumice.cluster.controllers.family import FamilyMachine
from pumice.cluster.controllers.groups import PodGroupMachine
from pumice.cluster.controllers.jobs.rule import VolcanoJobRule
from pumice.cluster.controllers.queues import QueueMachine
from pumice.cluster.kernel.roster import Surroundings, deployment_rules, kubelets
from pumice.cluster.machine import Machine
from pumice.core.messages import commands, replies
from pumice.core.messages.commands import Pull, Pulled
from pumice.core.objects.metadata import Object, text_map
from pumice.storage.codec import pack, unpack
from tests.actors.bench import Bench, running
from tests.kit.jobs import job_task, vcjob
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.kit.queues import queue


class Labeller(Machine):
    """Labels every node it sees, once, and again `period_s` later."""

    kinds: tuple[str, ...] = ("Node",)

    def __init__(self, period_s: float | None = None) -> None:
        self.seen: list[tuple[str, bool]] = []
        self.refused: list[str] = []
        self.due: dict[str, float] = {}
        self.steps = 0
        self._fresh: list[str] = []
        self._period_s = period_s

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        name = obj["metadata"]["name"]
        self.seen.append((name, deleted))
        if not deleted and "seen" not in (obj["metadata"].get("labels") or {}):
            self._fresh.append(name)

    def step(self, now: float) -> Sequence[commands.ApiRequest]:
        self.steps += 1
        fresh, self._fresh = self._fresh, []
        ripe = [name for name, due in self.due.items() if due <= now]
        for name in ripe:
            del self.due[name]
        if self._period_s is not None:
            self.due.update(dict.fromkeys(fresh, now + self._period_s))
        return [
            commands.Patch(
                "Node", "", name, pack({"metadata": {"labels": {"seen": "late" if name in ripe else "early"}}})
            )
            for name in [*fresh, *ripe]
        ]

    def answered(self, request: commands.ApiRequest, reply: replies.ApiReply, now: float) -> None:
        assert isinstance(request, commands.Patch)
        if isinstance(reply, replies.Refused):
            self.refused.append(request.name)

    def next_due(self) -> float | None:
        return min(self.due.values(), default=None)

    def running_timers(self) -> int:
        return len(self.due)


def port(bench: Bench, name: str) -> PokePort:
    return Mailbox(name, commands.Poke, replies.Done, activity=bench.context.activity)


def label(bench: Bench, name: str) -> str | None:
    reply = bench.store.get("Node", "", name)
    assert isinstance(reply, replies.Accepted)
    return text_map(unpack(reply.blob)["metadata"].get("labels")).get("seen")


def create(obj: Object) -> commands.Create:
    return commands.Create(pack(obj))


@pytest.mark.anyio
async def test_it_sees_what_was_there_and_what_comes_and_idles_in_between() -> None:
    async with running(Bench()) as bench:
        await bench.api.ask(create(node("n1")))
        machine, mailbox = Labeller(), port(bench, "labeller")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Reconciler("labeller", mailbox, bench.context, api=bench.api, machines=[machine]).run)
            await bench.context.activity.wait_idle()
            assert label(bench, "n1") == "early"
            await bench.api.ask_many([create(node("n2")), create(pod("p")), commands.Delete("Node", "", "n1")])
            await bench.context.activity.wait_idle()
            assert label(bench, "n2") == "early"
            assert machine.seen[-3:] == [("n2", False), ("n1", True), ("n2", False)]
            mailbox.close()
        mailbox.abort()


class Counter(Labeller):
    """Looks at nodes and queues, and asks for nothing."""

    kinds = ("Queue", "Node")

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        self.seen.append((obj["metadata"]["name"], deleted))


@pytest.mark.anyio
async def test_it_looks_at_nothing_before_there_is_what_it_waits_for() -> None:
    async with running(Bench()) as bench:
        machine, mailbox = Counter(), port(bench, "counter")
        nodes = [create(node(f"n{number:03}")) for number in range(2 * TOLD)]
        await bench.api.ask_many(nodes[:TOLD])
        async with anyio.create_task_group() as tasks:
            of_queues = Reconciler(
                "counter", mailbox, bench.context, api=bench.api, machines=[machine], waits_for=("Queue",)
            )
            tasks.start_soon(of_queues.run)
            await bench.api.ask_many(nodes[TOLD:])
            await bench.context.activity.wait_idle()
            assert machine.seen == []
            await bench.api.ask(create(queue("q")))
            await bench.context.activity.wait_idle()
            assert machine.seen == [("q", False), *((f"n{number:03}", False) for number in range(2 * TOLD))]
            await bench.api.ask(commands.Delete("Queue", "", "q"))
            await bench.api.ask(commands.Delete("Node", "", "n000"))
            await bench.context.activity.wait_idle()
            assert machine.seen[-2:] == [("q", True), ("n000", True)]
            mailbox.close()
        mailbox.abort()


@pytest.mark.anyio
async def test_a_poke_lets_it_look_again() -> None:
    async with running(Bench()) as bench:
        machine, mailbox = Labeller(), port(bench, "labeller")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Reconciler("labeller", mailbox, bench.context, api=bench.api, machines=[machine]).run)
            await bench.context.activity.wait_idle()
            machine.due["nobody"] = 0.0
            assert await mailbox.ask(commands.Poke()) == replies.Done()
            assert machine.refused == ["nobody"]
            mailbox.close()
        mailbox.abort()


@pytest.mark.anyio
async def test_two_machines_share_a_watch() -> None:
    async with running(Bench()) as bench:
        first, second, mailbox = Labeller(), Labeller(), port(bench, "both")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Reconciler("both", mailbox, bench.context, api=bench.api, machines=[first, second]).run)
            await bench.api.ask(create(node("n1")))
            await bench.context.activity.wait_idle()
            assert ("n1", False) in first.seen
            assert first.seen == second.seen
            mailbox.close()
        mailbox.abort()


@pytest.mark.anyio
async def test_only_who_had_something_to_ask_is_asked_again() -> None:
    async with running(Bench()) as bench:
        quiet, busy, mailbox = Labeller(), Labeller(), port(bench, "both")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Reconciler("both", mailbox, bench.context, api=bench.api, machines=[quiet, busy]).run)
            await bench.context.activity.wait_idle()
            steps = quiet.steps, busy.steps
            busy.due["nobody"] = 0.0
            await mailbox.ask(commands.Poke())
            assert (quiet.steps, busy.steps) == (steps[0] + 1, steps[1] + 2)
            mailbox.close()
        mailbox.abort()


@pytest.mark.anyio
async def test_what_is_listed_again_as_it_was_is_told_once() -> None:
    async with running(Bench()) as bench:
        machine, mailbox = Labeller(), port(bench, "labeller")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Reconciler("labeller", mailbox, bench.context, api=bench.api, machines=[machine]).run)
            await bench.api.ask_many([create(node("gone")), create(node("same"))])
            await bench.context.activity.wait_idle()
            told = len(machine.seen)
            bench.store.delete(commands.Delete("Node", "", "gone"), 0.0)
            bench.store.log.forget_all(bench.store.revision)
            await bench.api.ask(create(node("new")))
            await bench.context.activity.wait_idle()
            assert label(bench, "new") == "early"
            assert machine.seen[told:] == [("gone", True), ("new", False), ("new", False)]
            mailbox.close()
        mailbox.abort()


@pytest.mark.trio
async def test_timers_go_off_and_are_on_the_board_until_then(autojump_clock: object) -> None:
    async with running(Bench(clock=VirtualClock())) as bench:
        machine, mailbox = Labeller(period_s=3.0), port(bench, "labeller")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Reconciler("labeller", mailbox, bench.context, api=bench.api, machines=[machine]).run)
            await bench.api.ask(create(node("n1")))
            began = anyio.current_time()
            await anyio.sleep(1)
            assert bench.context.activity.reasons() == ["labeller has 1 timers"]
            await bench.context.activity.wait_idle()
            assert anyio.current_time() - began == pytest.approx(3.0, abs=1e-3)
            assert label(bench, "n1") == "late"
            mailbox.close()
        mailbox.abort()


async def schedule(bench: Bench) -> None:
    """A scheduler that enqueues every group and puts every pod on n1."""
    seen = 0
    while True:
        seen = expected(await bench.api.ask(Pull("schedule", seen)), Pulled).revision
        for request in _decisions(bench):
            await bench.api.ask(request)


def _decisions(bench: Bench) -> list[commands.ApiRequest]:
    found: list[commands.ApiRequest] = []
    for kind in ("PodGroup", "Pod"):
        listing = bench.store.list(kind)
        assert isinstance(listing, replies.Listing)
        for obj in map(unpack, listing.blobs):
            meta = obj["metadata"]
            if kind == "PodGroup" and obj["status"]["phase"] == "Pending":
                patch = pack({"phase": "Inqueue"})
                found.append(commands.UpdateStatus("PodGroup", meta["namespace"], meta["name"], patch))
            grouped = "scheduling.k8s.io/group-name" in (meta.get("annotations") or {})
            if kind == "Pod" and grouped and not obj["spec"].get("nodeName"):
                found.append(commands.BindPod(meta["namespace"], meta["name"], meta["uid"], "n1"))
    return found


@pytest.mark.anyio
async def test_agents_and_controllers_bring_a_cluster_to_its_end() -> None:
    """On both backends and on the real clock: a gang, a plain pod and a Deployment, down to the last timer."""
    async with running(Bench(clock=RealClock())) as bench:
        objects = bench.context.objects.unpack
        machines: tuple[Machine, ...] = (
            FamilyMachine(VolcanoJobRule(), objects),
            PodGroupMachine(),
            *map(FamilyMachine, deployment_rules()),
            QueueMachine(objects),
        )
        mailboxes = [port(bench, f"machine-{number}") for number in range(len(machines) + 1)]
        async with anyio.create_task_group() as tasks:
            for each, mailbox in zip(machines, mailboxes, strict=False):
                own = mailbox.name, mailbox, bench.context
                tasks.start_soon(Reconciler(*own, api=bench.api, machines=(each,)).run)
            tasks.start_soon(
                Reconciler("agents", mailboxes[-1], bench.context, api=bench.api, machines=kubelets(Surroundings())).run
            )
            tasks.start_soon(schedule, bench)
            await bench.api.ask_many([create(queue("default")), create(node("n1"))])
            gang = vcjob(
                "j", job_task("a", replicas=20, duration="100ms"), job_task("b", depends_on=["a"], duration="50ms")
            )
            gang["spec"]["minAvailable"] = 1
            await bench.api.ask_many([create(gang), create(pod("p", duration="100ms"))])
            await bench.context.activity.wait_idle()
            reply = expected(await bench.api.ask(commands.Get("Job", "default", "j")), replies.Accepted)
            status = unpack(reply.blob)["status"]
            assert (status["state"]["phase"], status["succeeded"]) == ("Completed", 21)
            reply = expected(await bench.api.ask(commands.Get("Pod", "default", "p")), replies.Accepted)
            assert unpack(reply.blob)["status"]["phase"] == "Succeeded"
            tasks.cancel_scope.cancel()
        for mailbox in mailboxes:
            mailbox.abort()


@pytest.mark.trio
async def test_a_stream_of_changes_gathers_between_two_looks(autojump_clock: object) -> None:
    async with running(Bench(clock=VirtualClock())) as bench:
        machine, mailbox = Counter(), port(bench, "counter")
        async with anyio.create_task_group() as tasks:
            rests = Reconciler("counter", mailbox, bench.context, api=bench.api, machines=[machine], rest_s=0.1)
            tasks.start_soon(rests.run)
            for number in range(4):  # a few looks are free
                await bench.api.ask(create(node(f"early{number}")))
                await anyio.sleep(0.01)
                assert machine.seen[-1] == (f"early{number}", False)
            before = machine.steps
            for number in range(200):
                await bench.api.ask(create(node(f"n{number:03}")))
                await anyio.sleep(0.01)
            assert machine.steps - before < 80, "at most ten a second, and ten at once"
            await bench.context.activity.wait_idle()
            assert machine.seen[-1] == ("n199", False)
            mailbox.close()
        mailbox.abort()
