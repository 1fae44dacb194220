"""Questions over HTTP: asked in a process of their own, so many at a time, for as long as somebody waits."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import anyio
import pytest

from pumice.actors.gateway.advice import KINDS
from tests.actors.gateway.advisers import counts, dies, repeats, sleeps
from tests.actors.gateway.rig import PATIENCE_S, Web, serving

pytestmark = pytest.mark.anyio
BASE = "/apis/pumice.dev/v1"


async def pid_in(folder: Path) -> int:
    """Of the process that has begun."""
    with anyio.fail_after(PATIENCE_S):
        while not (folder / "pid").exists() or not (folder / "pid").read_text():  # noqa: ASYNC110 - a process writes it
            await anyio.sleep(0.02)
    return int((folder / "pid").read_text())


async def gone(pid: int) -> None:
    """Return when the process has ended."""
    with anyio.fail_after(PATIENCE_S):
        while Path(f"/proc/{pid}").exists():  # noqa: ASYNC110, ASYNC240 - another process, no file on a disk
            await anyio.sleep(0.02)


async def test_a_question_is_handed_on_as_it_stands_and_answered_elsewhere() -> None:
    async with serving(adviser=repeats) as web:
        said = await web.get(f"{BASE}/namespaces/a/explanations/g?of=pod&budget=3&of=job")
        pid = said.pop("pid")
        assert said == {
            "resource": "explanations",
            "namespace": "a",
            "name": "g",
            "query": {"of": "pod", "budget": "3"},
        }
        assert pid != os.getpid()
        assert (await web.get(f"{BASE}/standings"))["name"] == ""
        assert (await web.get(f"{BASE}/standings/q1"))["name"] == "q1"
        refused = await web.send("GET", f"{BASE}/standings/nobody", code=404)
        assert (refused["kind"], refused["reason"], refused["message"]) == ("Status", "NotFound", "there is nobody")


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "nothing", 404),
        ("GET", "cycles", 404),
        ("GET", "explanations/g", 404),
        ("GET", "namespaces/a/standings/q", 404),
        ("GET", "standings/q/status", 404),
        ("GET", "waitclasses/x", 404),
        ("POST", "standings", 405),
        ("DELETE", "cycles/3", 405),
    ],
)
async def test_what_cannot_be_asked(method: str, path: str, code: int) -> None:
    async with serving(adviser=repeats) as web:
        assert (await web.http.request(method, f"{BASE}/{path}")).status_code == code


async def test_more_questions_than_may_be_are_turned_away_with_a_time_to_come_back(tmp_path: Path) -> None:
    pid = 0
    async with serving(adviser=partial(sleeps, str(tmp_path)), question_limit=1) as web:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(web.http.get, f"{BASE}/standings")
            pid = await pid_in(tmp_path)
            refused = await web.http.get(f"{BASE}/standings")
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "2")
            assert refused.json()["reason"] == "TooManyRequests"
            assert (await web.http.get("/version")).status_code == 200
            tasks.cancel_scope.cancel()
        await gone(pid)


async def test_a_question_ends_when_its_asker_goes_and_the_place_is_free_again(tmp_path: Path) -> None:
    async with serving(adviser=partial(sleeps, str(tmp_path)), question_limit=1) as web:
        async with await anyio.connect_tcp(*web.settings.address) as stream:
            await stream.send(f"GET {BASE}/standings HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
            pid = await pid_in(tmp_path)
        await gone(pid)
        (tmp_path / "pid").unlink()
        async with await anyio.connect_tcp(*web.settings.address) as stream:
            await stream.send(f"GET {BASE}/standings HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
            assert await pid_in(tmp_path) != pid


def children() -> set[int]:
    """Processes that this one has started and that are still there."""
    listed = (path.read_text() for path in Path("/proc/self/task").glob("*/children"))
    return {int(pid) for each in listed for pid in each.split()}


async def test_whoever_leaves_while_a_process_starts_leaves_no_process_behind(tmp_path: Path) -> None:
    before = children()
    async with serving(adviser=partial(sleeps, str(tmp_path)), question_limit=3) as web:
        for _ in range(8):
            async with await anyio.connect_tcp(*web.settings.address) as stream:
                await stream.send(f"GET {BASE}/standings HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
                await anyio.sleep(0.1)
            assert len(children() - before) <= 4
        with anyio.fail_after(PATIENCE_S):
            while children() - before:  # noqa: ASYNC110 - processes
                await anyio.sleep(0.05)


async def test_a_question_that_ends_soon_after_its_asker_has_left_keeps_its_process() -> None:
    before = children()
    async with serving(adviser=repeats) as web:
        pid = (await web.get(f"{BASE}/standings"))["pid"]
        async with await anyio.connect_tcp(*web.settings.address) as stream:
            await stream.send(f"GET {BASE}/standings HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        await anyio.sleep(0.1)
        assert (await web.get(f"{BASE}/standings"))["pid"] == pid
    assert children() == before


async def test_a_server_that_stops_does_not_wait_for_answers(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            async with serving(adviser=partial(sleeps, str(tmp_path)), grace_s=0.5) as web:
                tasks.start_soon(_ask_in_vain, web)
                pid = await pid_in(tmp_path)
            await gone(pid)
            tasks.cancel_scope.cancel()


async def _ask_in_vain(web: Web) -> None:
    async with await anyio.connect_tcp(*web.settings.address) as stream:
        await stream.send(f"GET {BASE}/standings HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        await anyio.sleep_forever()


async def test_an_answer_that_takes_too_long_or_never_comes() -> None:
    async with serving(adviser=dies) as web:
        assert (await web.http.get(f"{BASE}/standings")).status_code == 500
    async with serving() as web:
        assert (await web.http.get(f"{BASE}/standings")).status_code == 503


async def test_patience_has_an_end(tmp_path: Path) -> None:
    async with serving(adviser=partial(sleeps, str(tmp_path)), question_s=1.5) as web:
        assert (await web.http.get(f"{BASE}/standings")).status_code == 503
        if (tmp_path / "pid").exists():  # else it was not even there in time
            await gone(await pid_in(tmp_path))


async def test_the_group_is_discovered_and_shadows_no_other_resource() -> None:
    async with serving(adviser=repeats) as web:
        groups = {group["name"]: group for group in (await web.get("/apis"))["groups"]}
        assert groups["pumice.dev"]["preferredVersion"] == {"groupVersion": "pumice.dev/v1", "version": "v1"}
        assert (await web.get("/apis/pumice.dev"))["kind"] == "APIGroup"
        listed = (await web.get(BASE))["resources"]
        assert {row["name"]: row["kind"] for row in listed} == {row.plural: row.kind for row in KINDS.values()}
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        known = (await web.get("/apis", accept=accept))["items"]
        found = [one["resource"] for one in known[-1]["versions"][0]["resources"]]
        assert found == list(KINDS)
        others = [one for group in known[:-1] for version in group["versions"] for one in version["resources"]]
        words = {
            each for one in others for each in (one["resource"], one["singularResource"], *one.get("shortNames", ()))
        }
        assert not words & {*KINDS, *(row.kind.lower() for row in KINDS.values())}


async def test_waiting_jobs_are_counted_once_somebody_reads_metrics() -> None:
    async with serving(adviser=counts) as web:
        assert "pumice_waiting" not in (await web.http.get("/metrics")).text
        with anyio.fail_after(PATIENCE_S):
            while "pumice_waiting_jobs" not in (text := (await web.http.get("/metrics")).text):  # noqa: ASYNC110
                await anyio.sleep(0.05)
        assert 'pumice_waiting_jobs{class="NoCapacity",queue="q\\"1",reason="InUse"} 2.0' in text
        assert "pumice_waiting_counted_cycle 7.0" in text
