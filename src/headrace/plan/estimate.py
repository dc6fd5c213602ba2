"""Estimates what a job will take before anything is spent, from a sample of real prompts: calls, tokens, cost, disk.

Does not cover: where prices come from (plan.prices). The cost of a model whose price is not known is None, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import msgspec

from headrace.errors import FileUnusable
from headrace.plan.called_models import own_models, question_models
from headrace.plan.prices import Price, price_of
from headrace.plan.sources.row_source import RowSource
from headrace.survey.asked_question import AskedQuestion, asked_questions
from headrace.survey.files.file_store import FileStore
from headrace.survey.files.file_tokens import file_tokens
from headrace.survey.files.marks import NO_FILES, PromptFiles
from headrace.survey.names import Context, named_agent
from headrace.survey.prompts import persona
from headrace.survey.questions.base import Question, Schema
from headrace.survey.templates import CannotRender
from headrace.survey.values import Fields, decode_fields

if TYPE_CHECKING:
    from headrace.plan.job import Job
    from headrace.survey.model import Model

_SAMPLE = 20
_CHARS_PER_TOKEN = 4
_TEXT_ANSWER_TOKENS = 60
_LIST_ITEMS, _ITEM_TOKENS = 5, 5  # of a list whose length nothing bounds
_COMMENT_TOKENS = 20
# What an interview takes beside its texts, and what zstd leaves of these; tests/plan/test_estimate.py holds them to it.
_ROW_BYTES = 120
_LEFT_BY_COMPRESSION = 0.2
_LIST_ROW_BYTES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What so many interviews take, every question asked once. `cost` is in US dollars, or None."""

    interviews: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    disk_bytes: int


class _ModelUse(msgspec.Struct, frozen=True):
    """The tokens that one interview takes from one model, on average over all interviews; `file_tokens` are among the
    input's.
    """

    model: Model
    input_tokens: float
    output_tokens: float
    file_tokens: float


def estimate(job: Job, interviews: int) -> Estimate:
    calls, uses = _asked_of_models(job)
    input_tokens, output_tokens = sum(use.input_tokens for use in uses), sum(use.output_tokens for use in uses)
    of_files = sum(use.file_tokens for use in uses)  # of which the run file holds the words alone
    text_bytes = (input_tokens - of_files + output_tokens) * _CHARS_PER_TOKEN
    return Estimate(
        interviews=interviews,
        calls=interviews * calls,
        input_tokens=round(interviews * input_tokens),
        output_tokens=round(interviews * output_tokens),
        cost=_cost(uses, interviews),
        disk_bytes=round(interviews * (_ROW_BYTES + text_bytes * _LEFT_BY_COMPRESSION))
        + _list_bytes(job.agents.source)
        + _list_bytes(job.scenarios.source),
    )


def cost_by_model(job: Job, expected: Estimate) -> dict[str, Any]:
    """An estimate in the words of EDSL's `estimate_job_cost`: totals, and a line for each model and kind of token.

    A cost is None where a price is not known. There are no credits.
    """
    lines: list[dict[str, Any]] = []  # two a model
    for use in _asked_of_models(job)[1]:
        price = price_of(use.model)
        kinds = (("input", use.input_tokens), ("output", use.output_tokens))
        lines += (_cost_line(use.model, kind, round(tokens * expected.interviews), price) for kind, tokens in kinds)
    return {
        "estimated_total_cost_usd": expected.cost,
        "estimated_total_input_tokens": expected.input_tokens,
        "estimated_total_output_tokens": expected.output_tokens,
        "detailed_costs": lines,
    }


def _asked_of_models(job: Job) -> tuple[int, list[_ModelUse]]:
    """How many calls an interview makes, and what it takes from each model: the plan's by their share of all
    interviews, a question's own model in every interview.
    """
    if job.agents.settings.answers_everything:
        return 0, []
    questions = asked_questions(job.survey)
    sample = _sample(job, questions)
    asked = [question for question in questions if not question.is_derived]
    numbers = question_models(job.survey, 0)
    shared = [question for question in asked if question.position not in numbers]
    plan_models = zip(job.models, job.model_shares(), strict=True) if shared else ()
    uses = [_use(model, shared, sample, share) for model, share in plan_models]
    for number, model in enumerate(own_models(job.survey)):
        uses.append(_use(model, [each for each in asked if numbers.get(each.position) == number], sample, share=1.0))
    return len(asked), uses


def _use(model: Model, questions: list[AskedQuestion], sample: _PromptSample, share: float) -> _ModelUse:
    text_tokens = sum(sample.text_tokens(asked.position) for asked in questions)
    of_files = sum(sample.file_tokens(asked.position, model) for asked in questions)
    output_tokens = sum(_reply_tokens(asked.question) for asked in questions)
    return _ModelUse(model, (text_tokens + of_files) * share, output_tokens * share, of_files * share)


def _cost_line(model: Model, kind: str, tokens: int, price: Price | None) -> dict[str, Any]:
    rate = None if price is None else price.input if kind == "input" else price.output
    return {
        "inference_service": model.service_name,
        "model": model.name,
        "token_type": kind,
        "price_per_million_tokens": rate,
        "tokens": tokens,
        "cost_usd": None if rate is None else tokens * rate / 1_000_000,
    }


def call_cost(price: Price, system: str, prompt: str, of_files: int, question: Question) -> float:
    """What one call costs, in US dollars, by the length of its prompts, the tokens `of_files` in it, and the kind of
    its answer.
    """
    return price.of(round((len(system) + len(prompt)) / _CHARS_PER_TOKEN) + of_files, _reply_tokens(question))


def _cost(uses: list[_ModelUse], interviews: int) -> float | None:
    """In US dollars; None where a price is not known."""
    prices = [price_of(use.model) for use in uses]
    known = [price for price in prices if price is not None]
    if len(known) < len(prices):
        return None
    taken = ((use.input_tokens * interviews, use.output_tokens * interviews) for use in uses)
    return sum(
        (price.of(round(read), round(written)) for price, (read, written) in zip(known, taken, strict=True)), 0.0
    )


def _list_bytes(source: RowSource) -> int:
    """The bytes that a list takes in the run file, estimated from its first rows."""
    rows = list(islice(source.rows(), _SAMPLE))
    return round(source.length * (_LIST_ROW_BYTES + sum(map(len, rows)) / len(rows)))


class _PromptSample:
    """What each question's prompts hold, the system prompt included, over the first agents and scenarios."""

    def __init__(self, questions: int) -> None:
        self.prompts = 0
        self.letters = [0] * questions
        self.files: list[list[FileStore]] = [[] for _ in range(questions)]  # of so many prompts

    def text_tokens(self, position: int) -> float:
        """The mean number of tokens of a question's texts."""
        return self.letters[position] / _CHARS_PER_TOKEN / max(self.prompts, 1)

    def file_tokens(self, position: int, model: Model) -> float:
        """The mean number of tokens that this model counts for a question's files."""
        counted = (file_tokens(model.service_name, model.name, file) for file in self.files[position])
        return sum(counted) / max(self.prompts, 1)


def _sample(job: Job, questions: list[AskedQuestion]) -> _PromptSample:
    sample = _PromptSample(len(questions))
    agents = list(islice(job.agents.source.rows(), _SAMPLE))
    scenarios = list(islice(job.scenarios.source.rows(), _SAMPLE))
    sample.prompts = max(len(agents), len(scenarios))
    for position in range(sample.prompts):
        place = position % len(agents)
        agent = named_agent(decode_fields(agents[place]), place, job.survey.resolved)
        scenario = decode_fields(scenarios[position % len(scenarios)])
        answers = {asked.name: _expected_answer(asked.question) for asked in questions}
        context, system = {"agent": agent, "scenario": scenario, **answers}, _system(job, agent)
        for asked in questions:
            letters, files = (0, NO_FILES) if asked.is_derived else _prompt_holds(asked, context)
            sample.letters[asked.position] += len(system) + letters
            sample.files[asked.position] += (each.file for each in files)
    return sample


def _expected_answer(question: Question) -> dict[str, Any]:
    """An answer as long as this question's are expected to be: later prompts repeat it, memories above all."""
    length = _CHARS_PER_TOKEN * (_ITEM_TOKENS if question.is_derived else _answer_tokens(question.schema()))
    return {"answer": "x" * length, "comment": "", "is_answered": True}


def _system(job: Job, agent: Fields) -> str:
    try:
        return persona(agent, job.agents.settings.of(agent), job.survey.wording)
    except CannotRender:
        return ""


def _prompt_holds(asked: AskedQuestion, context: Context) -> tuple[int, PromptFiles]:
    """How many letters a prompt has beside its files, and those."""
    try:
        prompt, _, files = asked.write(context)
    except (CannotRender, FileUnusable):
        return len(asked.specimen()), NO_FILES
    return len(prompt) - sum(each.end - each.start for each in files), files


def _reply_tokens(question: Question) -> int:
    return _answer_tokens(question.schema()) + (_COMMENT_TOKENS if question.has_comment else 0)


def _answer_tokens(schema: Schema) -> int:
    if "enum" in schema:
        return 1 + max((len(str(option)) for option in schema["enum"]), default=0) // _CHARS_PER_TOKEN
    held = schema.get("type")
    types = cast("list[Any]", held) if isinstance(held, list) else [held]
    if "object" in types:
        inner = schema.get("properties", {})
        return sum(len(name) // _CHARS_PER_TOKEN + 3 + _answer_tokens(part) for name, part in inner.items())
    if "array" in types:
        items = schema.get("maxItems") or schema.get("minItems") or _LIST_ITEMS
        return items * _ITEM_TOKENS
    if types == ["string"]:
        return _TEXT_ANSWER_TOKENS
    return _ITEM_TOKENS if "string" in types else 2
