# SPDX-License-Identifier: Apache-2.0
"""`pumice whatif --until-starts`: the searches, one after the other, and their results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from pumice.cli.exits import Exit
from pumice.cli.terminal import Terminal
from pumice.cluster.kernel.fork import Fork
from pumice.collecting import rarely
from pumice.executors import Executors
from pumice.questions.oneshot.left_out import left_out
from pumice.questions.whatif.naming import found
from pumice.questions.whatif.search.advice import answered
from pumice.questions.whatif.search.defragment import StartAnswer
from pumice.questions.whatif.search.starting import StartQuestion, known_job, runs_in_part
from pumice.results import Result
from pumice.units import counted, time_span
from pumice.work import CHANGE, OBJECT, WorkBudget, WorkOverError

GUESS: Final = 100
"""Futures in a bar whose number is unknown."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options of a search: the job that must start within so many seconds. `seconds`: time for trying; `works`: the
    executors, None for this process.
    """

    job: str
    within_s: float
    seconds: float
    like: Sequence[str]
    seed: int
    works: Executors | None = None


class StartsWith(Result, kw_only=True, tag="whatif/1"):
    """Changes with which a job starts within so many seconds. `whole`: it runs with some of its pods, and starts in
    full when all of them are on nodes. `starts_s`: its start without changes, null when it does not start. `tried`: the
    number of futures; `complete`: everything was tried before the budget was spent.
    """

    job: str
    whole: bool
    within_s: float
    starts_s: float | None
    answers: list[StartAnswer]
    tried: int
    complete: bool
    supposed: list[str]


def search(fork: Fork, asked: SearchOptions, terminal: Terminal) -> int:
    """Search. Exit code 0 when the job starts without changes, else 1; 2 when an object could not be used."""
    work = WorkBudget.of_seconds(asked.seconds)
    work.add(len(fork.objects) * (OBJECT + CHANGE))
    job = known_job(fork, asked.job)
    for name in asked.like:
        found(fork.objects, ("Node", "", name))
    with (
        terminal.progress("futures tried", GUESS) as advance,
        asked.works() if asked.works else nullcontext() as executor,
        rarely(),
    ):
        question = StartQuestion(
            fork,
            job,
            asked.within_s,
            asked.seed,
            runs_in_part(fork, job),
            lambda job, seconds: advance(1),
            executor=executor,
            work=work,
        )
        starts_s, answers = None, list[StartAnswer]()
        with suppress(WorkOverError):
            starts_s = question.starts()
            if starts_s is None:
                for answer in answered(question, asked.like):  # one by one: those before the work is over count
                    answers.append(answer)
    complete = starts_s is not None or not question.spent()
    told = StartsWith(
        job=job,
        whole=question.whole,
        within_s=asked.within_s,
        starts_s=starts_s,
        answers=answers,
        tried=question.tries,
        complete=complete,
        supposed=left_out(fork),
    )
    terminal.emit(told, lambda console: show_answers(console, question, starts_s, answers, complete=complete))
    return Exit.USAGE if terminal.errors else Exit.DONE if starts_s is not None else Exit.DIFFERS


def show_answers(
    console: Console, question: StartQuestion, starts_s: float | None, answers: Sequence[StartAnswer], *, complete: bool
) -> None:
    """Print a sentence for each answer, with the start of the job."""
    for sentence in left_out(question.fork):
        console.print(sentence)
    does, not_done = (
        ("has all its pods", "runs with some of its pods, and does not get all")
        if question.whole
        else ("starts", "does not start")
    )
    if starts_s is not None:
        console.print(f"{question.job} {does} after {time_span(starts_s)} as it is.")
        return
    console.print(f"{question.job} {not_done} within {time_span(question.within_s)}. It would with:")
    for answer in answers:
        console.print(f"- {_what(answer)}: after {time_span(answer.starts_s)} ({_how_sure(answer)})")
    if not answers:
        console.print("nothing that was tried")
    if not complete:
        console.print("The work for trying was over before everything was tried (--budget).")


def _what(answer: StartAnswer) -> str:
    of = ", ".join(answer.of)
    match answer.code:
        case "Nodes":
            return f"{counted(answer.amount, 'more node')} like {of}"
        case "Capability":
            return answer.changes[0]
        case "Change":
            return answer.changes[0]
        case "Priority":
            return f"a priority of {answer.amount}"
        case "FewerJobs":
            return f"{counted(answer.amount, 'running job')} ended: {of}"
        case _:
            return f"{counted(answer.amount, 'pod')} moved: {'; '.join(answer.changes)}"


def _how_sure(answer: StartAnswer) -> str:
    if answer.code == "Change":
        return "one less does not do" if answer.least else "less may do"
    if answer.least:
        return "the least: nothing smaller does"
    if answer.code == "Moves":
        return f"the best that was found; {answer.bound} at least"
    if answer.code == "FewerJobs":
        return "none of them can be left out"
    return "one less does not do"
