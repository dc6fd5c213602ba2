"""Checks, before anything runs, that a survey's texts and a job's lists fit together.

Covers: what bare names stand for; names that no agent or scenario has, or that some lack; templates that cannot be
written.
Does not cover: whether a survey makes sense by itself (survey.survey).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from headrace.edsl_names import warn_once
from headrace.errors import FileUnusable, Spelled, SurveyError, nearest, nearest_field
from headrace.survey.agent import NAME
from headrace.survey.asked_question import AskedQuestion, asked_questions
from headrace.survey.files.file_store import FileStore
from headrace.survey.files.size_limits import SizeLimit
from headrace.survey.files.taken import instead_of, why_not_taken
from headrace.survey.flow.used_names import name_uses
from headrace.survey.known_services import SERVICES
from headrace.survey.names import (
    AGENT_NAME,
    DATA_ROOTS,
    STORED_AGENT_NAME,
    Context,
    NameUse,
    ResolvedNames,
    named_agent,
    spelled_out,
)
from headrace.survey.survey import Survey
from headrace.survey.templates import CannotRender
from headrace.survey.values import Fields, decode_fields

if TYPE_CHECKING:
    from headrace.plan.census import FieldCensus
    from headrace.plan.job import Job
    from headrace.plan.sources.row_source import RowSource
    from headrace.survey.model import Model

_GIVE_FIELDS = Spelled(
    "No agents or scenarios with fields were given: add them with .by().",
    command="No agents or scenarios with fields were given: add them with --agents or --scenarios.",
)

_GIVE_NAMES = Spelled(
    "Give the agents names: Agent(name=...), or name_field= where a list is read.",
    command="Give the agents names: a column `name` or `agent_name`.",
)


def resolve_names(survey: Survey, agents: FieldCensus, scenarios: FieldCensus) -> ResolvedNames:
    """What each bare name of the survey stands for, over all fields of both lists.

    Raises SurveyError for a name that several groups have, or none. A row that lacks the field changes nothing: a name
    means the same in every interview.
    """
    resolved: dict[str, str] = {}
    questions = {question.question_name for question in survey.questions}
    for use in name_uses(survey):
        if use.root in DATA_ROOTS:
            if f"{use.root}.{use.part}" == AGENT_NAME and "name" not in agents.kinds and NAME in agents.kinds:
                resolved[AGENT_NAME] = STORED_AGENT_NAME
        elif use.root not in questions or not use.part:
            spellings = [
                *([f"agent.{use.root}"] if use.root in agents.kinds else []),
                *([f"scenario.{use.root}"] if use.root in scenarios.kinds else []),
                *([f"{use.root}.answer"] if use.root in questions else []),
            ]
            stands_for = _only_one(use, spellings, {**agents.kinds, **scenarios.kinds}, questions)
            if use.root not in questions:
                resolved[use.root] = stands_for
    return resolved


def _only_one(use: NameUse, spellings: list[str], fields: Iterable[str], questions: set[str]) -> str:
    if len(spellings) == 1:
        return spellings[0]
    if spellings:
        written = [name if use.is_in_rule else f"{{{{ {name} }}}}" for name in spellings]
        raise SurveyError(
            f"{use.where}: {use.root!r} could be {len(spellings)} things.", fix=f"Write {' or '.join(written)}."
        )
    meant = nearest(use.root, [*fields, *questions])
    is_helpful = list(fields) or use.is_in_rule or meant.startswith("Did")
    raise SurveyError(
        f"{use.where}: there is nothing called {use.root!r}, no question and no field of agents or scenarios.",
        fix=meant if is_helpful else _GIVE_FIELDS,
    )


def warn_of_mistyped_answers(job: Job) -> None:
    """Warn where a test model has an answer for no question, and none for one: one name is mistyped."""
    asked = {question.question_name for question in job.survey.questions if not question.is_derived}
    for model in job.models:
        canned = model.parameters.get("canned_response")
        if model.service_name != "test" or not isinstance(canned, dict):
            continue
        names = set(map(str, cast("dict[Any, Any]", canned)))
        if asked.isdisjoint(names):
            continue  # the dict itself may be the answer
        unknown = sorted(names - asked)
        if unknown and (unanswered := sorted(asked - names)):
            said = f"canned_response has an answer for {unknown[0]!r}, which is no question, and none for"
            warn_once(f"{said} {unanswered[0]!r}. {nearest(unknown[0], unanswered)}")


def check_fit(job: Job) -> None:
    """Raises SurveyError for the first text that the lists cannot fill."""
    sources = {"agent": job.agents.source, "scenario": job.scenarios.source}
    for use in name_uses(job.survey):
        root, _, rest = spelled_out(use.name, job.survey.resolved).partition(".")
        if root not in DATA_ROOTS or not rest:
            continue
        census = sources[root].census
        if job.survey.is_mapped and "scenario" not in census.kinds:
            rest = rest.removeprefix("scenario.")  # of a text that names the row's columns by themselves
        field = rest if rest in census.kinds else rest.partition(".")[0]
        if field not in census.kinds:
            if root == "agent" and job.agents.settings.chooses_traits:
                continue
            raise SurveyError(_missing(job, use, root, field), fix=_known(root, field, census.kinds))
        # One agent's gap is a failure of its own; a gap in data to be mapped is mended before anything is spent.
        if job.survey.is_mapped and census.always is not None and field not in census.always:
            _check_rows_without(job, field)
    _check_agents_template(job)
    _try_templates(job)


def _check_agents_template(job: Job) -> None:
    """Refuse a template of the agents that names a trait which none of them has."""
    traits = job.agents.source.census.kinds
    if job.agents.settings.chooses_traits:
        return
    for settings in job.agents.settings.entries:
        for name in sorted(settings.trait_names):
            if name not in traits:
                raise SurveyError(
                    f"The agents' traits_presentation_template names {name!r}, and no agent has such a trait.",
                    fix=nearest(name, traits),
                )


def _missing(job: Job, use: NameUse, root: str, field: str) -> str:
    if job.survey.is_mapped:
        return f"The text names {field!r}, and no row has such a column."
    return f"{use.where}: no {root} has a field {field!r}."


def _known(root: str, field: str, names: Collection[str]) -> str:
    if f"{root}.{field}" == AGENT_NAME and names:
        return _GIVE_NAMES
    none = f"No {root}s with fields were given: add them with"
    return nearest_field(root, field, names) or Spelled(f"{none} .by().", command=f"{none} --{root}s.")


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
    for asked in asked_questions(job.survey):
        try:
            asked.write(context)
        except FileUnusable:
            continue  # that interview's failure
        except CannotRender as error:
            if error.is_in_text:
                where = "The prompt" if asked.question.names_row else f"Question {asked.name!r}"
                raise SurveyError(f"{where}: {error.message}.", fix="Mend its text.") from None


def check_files(job: Job) -> None:
    """Refuse, before anything is paid, a model that takes no such file as the first prompts hold."""
    context = _first_context(job)
    for asked in asked_questions(job.survey):
        try:
            files = asked.write(context)[2]
        except (CannotRender, FileUnusable):
            continue  # that interview's failure
        models = [asked.question.model] if asked.question.model is not None else job.models if files else ()
        for model in models:
            for each in files:
                if (why := _why_refused(model, each.file)) is not None:
                    raise SurveyError(
                        f"Question {asked.name!r} sends a file that the model {model.name!r} does not take: {why}.",
                        fix=instead_of(each.file, _field_of(each.file, context)),
                    )


def _field_of(file: FileStore, context: Context) -> str:
    """The field that holds a file, as a text names it."""
    for root in DATA_ROOTS:
        for name, value in (context.get(root) or {}).items():
            if value == file:
                return f"{root}.{name}" if name.isidentifier() else f"{root}[{name!r}]"
    return "the field"


def _why_refused(model: Model, file: FileStore) -> str | None:
    """Why a model would not take a file; None where it does, or where a smaller copy is sent."""
    why = why_not_taken(model.service_name, file)
    if why is not None or model.service_name not in SERVICES or (file.is_image() and file.too_large == "resize"):
        return why
    too_large = SizeLimit(model.service_name, model.parameters.get("max_file_bytes")).why_too_large(file)
    return too_large and f"{file.path}: {too_large}"


def _first_context(job: Job) -> Context:
    answers = {question.question_name: {"answer": "", "comment": ""} for question in job.survey.questions}
    agent, scenario = next(iter(job.agents)).to_fields(), dict(next(iter(job.scenarios)))
    return {"agent": named_agent(agent, 0, job.survey.resolved), "scenario": scenario, **answers}
