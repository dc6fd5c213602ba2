"""Checks, before anything runs, that a survey's texts and a job's lists fit together.

Covers: names that no agent or scenario has, or that some lack; templates that cannot be written.
Does not cover: whether a survey makes sense by itself (survey.survey).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from headrace.errors import Spelled, SurveyError, nearest
from headrace.survey.prompts import AskedQuestion, Context
from headrace.survey.templates import CannotRender
from headrace.survey.values import Fields, decode_fields

if TYPE_CHECKING:
    from headrace.plan.job import Job
    from headrace.plan.sources import RowSource


def check_fit(job: Job) -> None:
    """Raises SurveyError for the first text that the lists cannot fill."""
    sources = {"agent": job.agents.source, "scenario": job.scenarios.source}
    for question, place, name in job.survey.data_names():
        root, _, rest = name.partition(".")
        field, census = rest.partition(".")[0], sources[root].census
        if not field:
            continue
        if field not in census.kinds:
            raise SurveyError(_missing(job, question, place, root, field), fix=_known(root, field, census.kinds))
        # One agent's gap is a failure of its own; a gap in data to be mapped is mended before anything is spent.
        if job.survey.is_mapped and census.always is not None and field not in census.always:
            _check_rows_without(job, field)
    _check_agents_template(job)
    _try_templates(job)


def _check_agents_template(job: Job) -> None:
    """Refuse a template of the agents that names a trait which none of them has."""
    traits = job.agents.source.census.kinds
    for settings in job.agents.settings.entries:
        for name in sorted(settings.trait_names):
            if name not in traits:
                raise SurveyError(
                    f"The agents' traits_presentation_template names {name!r}, and no agent has such a trait.",
                    fix=nearest(name, traits),
                )


def _missing(job: Job, question: str, place: str, root: str, field: str) -> str:
    if job.survey.is_mapped:
        return f"The text names {field!r}, and no row has such a column."
    return f"Question {question!r}, {place}: no {root} has a field {field!r}."


def _known(root: str, field: str, names: Iterable[str]) -> str:
    none = f"No {root}s with fields were given: add them with"
    return nearest(field, names) or Spelled(f"{none} .by().", command=f"{none} --{root}s.")


def _check_rows_without(job: Job, field: str) -> None:
    """Renders the text with the first row that lacks the field: it may do without, by a default for instance."""
    rows = job.scenarios.source
    for number, fields in islice(_lacking(rows, field), 1):
        try:
            AskedQuestion(job.survey, 0).write({"scenario": fields})
        except CannotRender:
            raise SurveyError(
                f"The text names {field!r}, which row {number:,} of {rows.length:,} does not have.",
                fix=f"Give it one, or write {{{{ {field} | default('') }}}}.",
            ) from None


def _lacking(source: RowSource, field: str) -> Iterator[tuple[int, Fields]]:
    for number, row in enumerate(source.rows(), 1):
        fields = decode_fields(row)
        if field not in fields:
            yield number, fields


def _try_templates(job: Job) -> None:
    """Renders every prompt once: a filter that does not exist is found only then."""
    context = _first_context(job)
    for question in job.survey.questions:
        try:
            _asked(job, question.question_name).write(context)
        except CannotRender as error:
            if error.is_in_text:
                where = "The prompt" if question.names_row else f"Question {question.question_name!r}"
                raise SurveyError(f"{where}: {error.message}.", fix="Mend its text.") from None


def _first_context(job: Job) -> Context:
    answers = {question.question_name: {"answer": "", "comment": ""} for question in job.survey.questions}
    agent, scenario = next(iter(job.agents)).to_fields(), dict(next(iter(job.scenarios)))
    return {"agent": agent, "scenario": scenario, **answers}


def _asked(job: Job, question: str) -> AskedQuestion:
    return AskedQuestion(job.survey, job.survey.position(question))
