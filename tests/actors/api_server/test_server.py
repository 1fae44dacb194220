"""The api server as an actor: durable before answered, answered before seen, one bad request costs itself alone."""

from functools import partial
from typing import Any

import anyio
import pytest

from pumice.actors.errors import ActorFailedError, ActorStoppedError
from pumice.actors.runtime.mailbox import expected
from pumice.core.messages import commands, replies
from pumice.core.messages.commands import FaultsRead, Pull, Pulled, ReadFaults
from pumice.core.objects.metadata import Object
from pumice.storage import codec
from tests.actors.bench import Bench, running
from tests.kit.nodes import node
from tests.kit.pods import pod

pytestmark = pytest.mark.anyio


def create(obj: Object) -> commands.Create:
    return commands.Create(codec.pack(obj))


either_way = pytest.mark.parametrize("ahead", [0, 2])


@either_way
async def test_a_batch_is_one_append_and_every_request_is_answered(ahead: int) -> None:
    async with running(Bench(ahead=ahead)) as bench:
        requests = [create(pod(f"p{number}")) for number in range(20)]
        answers = await bench.api.ask_many([*requests, create(pod("p0")), commands.Get("Pod", "default", "p3")])
        assert [type(answer) for answer in answers[:20]] == [replies.Accepted] * 20
        refused = answers[20]
        assert isinstance(refused, replies.Refused)
        assert refused.reason == "AlreadyExists"
        assert isinstance(answers[21], replies.Accepted)
        assert bench.appends == 1
        assert [mutation.name for mutation in bench.mutations()] == [f"p{number}" for number in range(20)]


@either_way
async def test_nothing_is_answered_or_seen_before_it_is_on_disk(ahead: int) -> None:
    async with running(Bench(ahead=ahead)) as bench:
        bench.may_write = anyio.Event()
        answered: list[object] = []

        async def ask() -> None:
            answered.append(await bench.api.ask(create(node("n"))))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            assert answered == []
            assert bench.store.log.read(0).events == ()
            bench.may_write.set()
        assert len(answered) == 1
        assert bench.store.log.published == bench.store.revision == 1


async def test_reads_write_nothing() -> None:
    async with running(Bench()) as bench:
        await bench.api.ask_many([commands.List("Pod"), commands.Get("Pod", "default", "p")])
        assert bench.appends == 0


async def test_where_nobody_makes_faults_none_has_struck() -> None:
    async with running(Bench()) as bench:
        assert await bench.api.ask(ReadFaults()) == FaultsRead({})


async def test_a_watcher_is_woken_and_finds_the_change() -> None:
    async with running(Bench()) as bench:
        found: list[str] = []

        async def pull() -> None:
            reply = expected(await bench.api.ask(Pull("test", 0, ("Node",))), Pulled)
            found.extend(each.name for each in bench.context.objects.changes(reply.revisions, reply.events))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pull)
            await anyio.wait_all_tasks_blocked()
            await bench.api.ask(create(node("n")))
        assert found == ["n"]


async def test_a_binding_carries_the_number_of_its_decision() -> None:
    async with running(Bench()) as bench:
        await bench.api.ask(create(pod("p")))
        await bench.api.ask(commands.BindPod("default", "p", "", "n", cause="1/uid", sequence=77))
        assert [entry.cause for entry in bench.written] == [0, 77]


async def test_decisions_that_come_together_are_carried_out_in_their_order() -> None:
    async with running(Bench()) as bench:
        await bench.api.ask_many([create(node("n")), *[create(pod(name)) for name in "abc"]])
        asked = [commands.BindPod("default", name, "", "n", sequence=of) for name, of in (("b", 8), ("a", 9), ("c", 7))]
        answers = await bench.api.ask_many([asked[0], create(pod("d")), *asked[1:]])
        assert [type(answer) for answer in answers] == [replies.Accepted] * 4
        assert [change.name for change in bench.mutations()[-4:]] == ["c", "d", "b", "a"]


@pytest.mark.parametrize("request_of", [commands.EvictPod, partial(commands.BindPod, node="n")])
async def test_what_nobody_waits_for_any_more_is_not_carried_out(request_of: Any) -> None:
    async with running(Bench()) as bench:
        await bench.api.ask(create(pod("p")))
        late = await bench.api.ask(request_of("default", "p", "", until=anyio.current_time()))
        assert isinstance(late, replies.Refused)
        assert (late.code, late.reason, len(bench.written)) == (504, "Timeout", 1)
        in_time = await bench.api.ask(request_of("default", "p", "", until=anyio.current_time() + 60.0))
        assert isinstance(in_time, replies.Accepted)


async def test_a_replacement_that_nobody_waits_for_any_more_is_not_carried_out() -> None:
    """A claim that was written too late would be in the way of what was decided since."""
    async with running(Bench()) as bench:
        await bench.api.ask(create(node("n")))
        labelled = node("n", labels={"a": "b"})
        del labelled["metadata"]["uid"]
        new = codec.pack(labelled)
        late = await bench.api.ask(commands.Update(new, until=anyio.current_time()))
        assert isinstance(late, replies.Refused)
        assert (late.code, len(bench.written)) == (504, 1)
        assert isinstance(await bench.api.ask(commands.Update(new)), replies.Accepted)


async def test_of_what_is_not_there_the_api_says_by_which_revision() -> None:
    async with running(Bench()) as bench:
        await bench.api.ask(create(pod("p")))
        answer = await bench.api.ask(commands.Get("Pod", "default", "q"))
        assert isinstance(answer, replies.Refused)
        assert (answer.code, answer.revision) == (404, bench.store.revision)


async def test_a_request_nobody_foresaw_costs_itself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(Bench()) as bench:
        get = bench.store.get

        def broken(kind: str, namespace: str, name: str) -> replies.Accepted | replies.Refused:
            if name == "bad":
                raise RuntimeError("surprise")
            return get(kind, namespace, name)

        monkeypatch.setattr(bench.store, "get", broken)
        answers = await bench.api.ask_many(
            [create(pod("p")), commands.Get("Pod", "default", "bad"), commands.Get("Pod", "default", "p")]
        )
        assert [type(answer) for answer in answers] == [replies.Accepted, replies.Refused, replies.Accepted]
        refused = answers[1]
        assert isinstance(refused, replies.Refused)
        assert (refused.code, refused.reason) == (500, "InternalError")
        assert "bug in Pumice" in refused.message


@either_way
async def test_a_full_mailbox_holds_senders_and_loses_nothing(ahead: int) -> None:
    async with running(Bench(capacity=1, ahead=ahead)) as bench:

        async def ask(number: int) -> None:
            await bench.api.ask(create(pod(f"p{number}")))

        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(ask, number)
    assert bench.store.tables.count("Pod") == 50
    assert len(bench.written) == 50


async def test_who_asks_a_stopped_server_is_told() -> None:
    async with running(Bench()) as bench:
        pass
    with pytest.raises(ActorStoppedError):
        await bench.api.ask(commands.List("Pod"))


@either_way
async def test_a_dead_recorder_takes_the_server_with_it_and_nobody_is_told_yes(ahead: int) -> None:
    bench = Bench(ahead=ahead)
    outcomes: list[BaseException] = []
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:

            async def serve() -> None:
                try:
                    await bench.server().run()
                except* ActorStoppedError as errors:
                    outcomes.extend(errors.exceptions)

            tasks.start_soon(serve)
            bench.recorder.abort()
            with pytest.raises(ActorFailedError):
                await bench.api.ask(create(node("n")))
            bench.api.close()
    bench.api.abort()
    assert [error.actor for error in outcomes if isinstance(error, ActorStoppedError)] == ["recorder"]
