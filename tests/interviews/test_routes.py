"""Rules and dependencies against a tiny interpreter of a survey: random surveys, every executor, asked in turn and
overlapping, from the start and resumed.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import EndOfSurvey, Model, QuestionFreeText, Survey
from headrace.interviews.contract import Chunk, Interview, InterviewExecutor, Lease, Spec
from headrace.interviews.inline import InlineExecutor
from headrace.limits import RetryLimits
from headrace.models.provider import Request
from headrace.store.run_file.rows import DetailPacker
from headrace.survey.record import AnswerRecord, AnswerState
from tests.interviews.contract_driver import Controller, spec_for
from tests.interviews.executors import EXECUTORS

AGENTS = 6
ANSWERED, SKIPPED, FAILED, NOT_ASKED = AnswerState
_DICTIONARY = spec_for(Model("test")).dictionary


def answer_of(agent: int, question: str) -> str | None:
    """What an agent answers; None is no answer, and a failure."""
    return random.Random(f"{agent} {question}").choice(["Yes", "Yes", "No", "No", "No", None])


def answer(request: Request) -> str | None:
    return answer_of(request.agent["n"], request.question_name)


@dataclass(frozen=True)
class Condition:
    """An expression twice: as it is written in a rule, and as Python."""

    text: str
    names: frozenset[int]
    holds: Callable[[dict[int, str | None], int], bool]


@dataclass
class Written:
    """A survey as the test writes it, by positions."""

    count: int
    pipes: dict[int, int] = field(default_factory=dict)  # question -> the earlier one whose answer its text names
    skips: dict[int, list[Condition]] = field(default_factory=dict)
    before: dict[int, list[tuple[Condition, int]]] = field(default_factory=dict)
    after: dict[int, list[tuple[Condition, int]]] = field(default_factory=dict)

    def survey(self) -> Survey:
        survey = Survey()
        for at in range(self.count):
            text = f"You said {{{{ q{self.pipes[at]}.answer }}}}?" if at in self.pipes else "Well?"
            survey.add_question(QuestionFreeText(question_name=f"q{at}", question_text=text))
        for at, conditions in self.skips.items():
            for condition in conditions:
                survey.add_skip_rule(f"q{at}", condition.text)
        for rules, is_before in ((self.before, True), (self.after, False)):
            for at, listed in rules.items():
                for condition, target in listed:
                    end = EndOfSurvey if target == self.count else f"q{target}"
                    survey.add_rule(f"q{at}", condition.text, end, is_before)
        return survey


def interpret(written: Written, agent: int) -> list[tuple[AnswerState, str | None]]:
    """What becomes of each question, one after another: the meaning of rules in as few words as possible."""
    states: list[AnswerState] = []
    answers: dict[int, str | None] = {}
    go_on_at = in_doubt_before = 0
    for at in range(written.count):
        before = [(c, 0) for c in written.skips.get(at, [])] + written.before.get(at, [])
        after = written.after.get(at, [])
        reach = max([target for _, target in (*before, *after)], default=0)

        def unknown(names, states=states) -> bool:
            return any(states[name] >= FAILED for name in names)

        state, answers[at] = ANSWERED, None
        if at < go_on_at:
            state = SKIPPED
        elif at < in_doubt_before or unknown({n for c, _ in before for n in c.names}):
            state, in_doubt_before = NOT_ASKED, max(in_doubt_before, reach)
        elif held := [target for condition, target in before if condition.holds(answers, agent)]:
            state, go_on_at = SKIPPED, held[0]
        elif at in written.pipes and unknown([written.pipes[at]]):
            state, in_doubt_before = NOT_ASKED, reach
        else:
            answers[at] = answer_of(agent, f"q{at}")
            state = FAILED if answers[at] is None else ANSWERED
        states.append(state)
        if state in (ANSWERED, FAILED):
            if unknown({n for c, _ in after for n in c.names}):
                in_doubt_before = reach
            else:
                go_on_at = next((target for c, target in reversed(after) if c.holds(answers, agent)), 0)
    return [(state, answers[at]) for at, state in enumerate(states)]


def written_survey(chosen: random.Random) -> Written:
    written = Written(chosen.randint(1, 8))

    def condition(last: int) -> Condition:
        kind = chosen.choice(["is", "is not", "either", "age"] if last >= 0 else ["age"])
        if kind == "age":
            limit = chosen.randrange(AGENTS)
            return Condition(f"agent.n < {limit}", frozenset(), lambda answers, agent: agent < limit)
        one, two = chosen.randint(0, last), chosen.randint(0, last)
        name = chosen.choice([f"q{one}", f"q{one}.answer", f"{{{{ q{one}.answer }}}}"])
        if kind == "is":
            return Condition(f"{name} == 'Yes'", frozenset({one}), lambda answers, _: answers[one] == "Yes")
        if kind == "is not":
            return Condition(f"{name} != 'Yes'", frozenset({one}), lambda answers, _: answers[one] != "Yes")
        return Condition(
            f"{name} == 'No' and q{two} is not None",
            frozenset({one, two}),
            lambda answers, _: answers[one] == "No" and answers[two] is not None,
        )

    for at in range(written.count):
        if at and chosen.random() < 0.3:
            written.pipes[at] = chosen.randrange(at)
        if chosen.random() < 0.25:
            written.skips[at] = [condition(at - 1) for _ in range(chosen.randint(1, 2))]
        for rules, last, share in ((written.before, at - 1, 0.15), (written.after, at, 0.4)):
            if chosen.random() < share:
                targets = range(at + 1, written.count + 1)
                rules[at] = [(condition(last), chosen.choice(targets)) for _ in range(chosen.randint(1, 2))]
    return written


def spec_of(survey: Survey, model: Model) -> Spec:
    retry = RetryLimits(first_wait_s=0.01)
    return Spec(survey=survey.to_row(), models=[model.to_row()], prices=[None], dictionary=_DICTIONARY, retry=retry)


def chunk_of(kept: dict[int, list[AnswerRecord]]) -> Chunk:
    interviews = [Interview(n, 0, n, 0, 0, kept.get(n, [])) for n in range(AGENTS)]
    return Chunk(1, 1, interviews, {n: b'{"n": %d}' % n for n in range(AGENTS)}, {0: b"{}"})


async def conducted(
    make: Callable[[list[dict[str, Any]]], InterviewExecutor],
    survey: Survey,
    latency_s: float,
    kept: dict[int, list[AnswerRecord]] | None = None,
) -> dict[int, list[AnswerRecord]]:
    model = Model("test", canned_response=answer, latency_s=latency_s)
    executor = make([model.functions])
    await executor.open(spec_of(survey, model))
    try:
        executor.lease(Lease(interviews=AGENTS, buffer_bytes=1_000_000))
        controller = Controller(executor)
        await executor.start(chunk_of(kept or {}))
        await controller.read_until(lambda: 1 in controller.ended)
    finally:
        await executor.close()
    unpack = DetailPacker(_DICTIONARY).unpack
    return {row.ordinal: unpack(row.detail).records for row in controller.rows}


def outcome(records: list[AnswerRecord]) -> list[tuple[AnswerState, Any]]:
    return [(record.state, record.value) for record in records]


def check(written: Written, found: dict[int, list[AnswerRecord]]) -> None:
    for agent in range(AGENTS):
        assert outcome(found[agent]) == interpret(written, agent), (agent, written)


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from([0, 0.0001]))
def test_an_interview_takes_the_path_that_the_rules_say_also_when_it_is_resumed(
    chosen: random.Random, latency_s: float
):
    written = written_survey(chosen)
    survey = written.survey()
    assert Survey.from_row(survey.to_row()).to_row() == survey.to_row()
    found = asyncio.run(conducted(InlineExecutor, survey, latency_s))
    check(written, found)
    kept = {
        agent: [record for record in records if record.state is ANSWERED and chosen.random() < 0.5]
        for agent, records in found.items()
    }
    again = asyncio.run(conducted(InlineExecutor, survey, latency_s, kept))
    assert {agent: outcome(records) for agent, records in again.items()} == {
        agent: outcome(records) for agent, records in found.items()
    }


@pytest.mark.parametrize("name", EXECUTORS)
@pytest.mark.parametrize("seed", range(4))
async def test_every_executor_takes_the_same_path(name: str, seed: int):
    written = written_survey(random.Random(seed))
    check(written, await conducted(EXECUTORS[name], written.survey(), 0.001 * (seed % 2)))
