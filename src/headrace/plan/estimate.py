"""What a job will take, told before anything is spent. Covers: calls, tokens and disk, from a sample of real prompts.

Does not cover: prices. The cost of a model whose price is not known here is None, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from headrace.plan.sources import Source
from headrace.survey.models import Model
from headrace.survey.prompts import AskedQuestion, Context, persona
from headrace.survey.questions.base import Schema
from headrace.survey.templates import CannotRender
from headrace.survey.values import decode_fields

if TYPE_CHECKING:
    from headrace.plan.job import Job

_SAMPLE = 20
_CHARS_PER_TOKEN = 4
_TEXT_ANSWER_TOKENS = 60
# What an interview takes beside its texts, and what zstd leaves of these; tests/plan/test_estimate.py holds them to it.
_ROW_BYTES = 120
_LEFT_BY_COMPRESSION = 0.2
_LIST_ROW_BYTES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """For the whole job, every question asked once. `cost` is in US dollars, None where no price is known."""

    interviews: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    disk_bytes: int


def estimate(job: Job, n: int) -> Estimate:
    interviews = len(job) * n
    questions = [AskedQuestion(job.survey, position) for position in range(len(job.survey))]
    prompt_chars = _mean_prompt_chars(job, questions)
    output_tokens = sum(_answer_tokens(asked.question.schema(_options(asked))) for asked in questions)
    text_bytes = prompt_chars + output_tokens * _CHARS_PER_TOKEN
    return Estimate(
        interviews=interviews,
        calls=interviews * len(questions),
        input_tokens=round(interviews * prompt_chars / _CHARS_PER_TOKEN),
        output_tokens=interviews * output_tokens,
        cost=known_cost(job.models),
        disk_bytes=round(interviews * (_ROW_BYTES + text_bytes * _LEFT_BY_COMPRESSION))
        + _list_bytes(job.agents.source)
        + _list_bytes(job.scenarios.source),
    )


def known_cost(models: Iterable[Model]) -> float | None:
    """In US dollars; None where no price is known."""
    return 0.0 if all(model.service_name == "test" for model in models) else None


def _list_bytes(source: Source) -> int:
    """What a list takes in the run file, judged by its first rows."""
    rows = list(islice(source.rows(), _SAMPLE))
    return round(source.length * (_LIST_ROW_BYTES + sum(map(len, rows)) / len(rows)))


def _mean_prompt_chars(job: Job, questions: list[AskedQuestion]) -> float:
    total = sampled = 0
    agents = islice(job.agents.source.rows(), _SAMPLE)
    scenarios = list(islice(job.scenarios.source.rows(), _SAMPLE))
    for position, row in enumerate(agents):
        agent, scenario = decode_fields(row), decode_fields(scenarios[position % len(scenarios)])
        answers = {asked.name: {"answer": "an answer", "comment": ""} for asked in questions}
        total += _prompt_chars(questions, {"agent": agent, "scenario": scenario, **answers}, persona(agent))
        sampled += 1
    return total / max(sampled, 1)


def _prompt_chars(questions: list[AskedQuestion], context: Context, system: str) -> int:
    chars = 0
    for asked in questions:
        try:
            chars += len(asked.write(context)[0])
        except CannotRender:
            chars += len(asked.specimen())
        chars += len(system)
    return chars


def _options(asked: AskedQuestion) -> tuple[object, ...]:
    options = asked.question.options
    return () if isinstance(options, str) else options


def _answer_tokens(schema: Schema) -> int:
    if "enum" in schema:
        return 1 + max((len(str(option)) for option in schema["enum"]), default=0) // _CHARS_PER_TOKEN
    return _TEXT_ANSWER_TOKENS if schema.get("type") == "string" else 2
