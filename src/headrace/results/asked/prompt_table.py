"""The prompts of a job, one row for each question of each interview, written without running anything.

    job.prompts().select("user_prompt").print()

What an earlier question will be answered is not known yet: it stands as `<<mood.answer>>`. A prompt that cannot be
written without it, because its options are that answer, stands with its names unfilled. Rows are written when read.
Does not cover: writing a prompt (survey.asked_question), or what calls cost in all (plan.estimate).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import FileUnusable, InvalidInput, ListError, nearest
from headrace.expressions import ColumnKind
from headrace.plan.estimate import call_cost
from headrace.plan.fitting import check_fit
from headrace.plan.prices import price_of
from headrace.plan.product import Box, Coordinates
from headrace.results.printing import TABLE_ROWS, Glance
from headrace.results.tabular import Tabular, Values
from headrace.survey.asked_question import AskedQuestion, asked_questions
from headrace.survey.files.file_tokens import file_tokens
from headrace.survey.files.marks import NO_FILES, PromptFiles
from headrace.survey.names import Context, named_agent
from headrace.survey.prompts import persona
from headrace.survey.record import AnswerRecord, AnswerState
from headrace.survey.templates import CannotRender
from headrace.survey.values import Fields, decode_fields, kind_of

if TYPE_CHECKING:
    from headrace.plan.job import Job
    from headrace.survey.model import Model

COLUMNS = (
    "user_prompt", "system_prompt", "interview_index", "question_name",
    "scenario_index", "agent_index", "model", "estimated_cost",
)  # fmt: skip
SHOWN = ("question_name", "user_prompt", "system_prompt")


class PromptTable(Tabular):
    """The prompts of a job as rows; `job.prompts()` makes it. Checked at once, written when they are read."""

    def __init__(self, job: Job, columns: Sequence[str] = COLUMNS) -> None:
        job.survey.check_questions()
        job.settle_names()
        check_fit(job)
        self._job = job
        self._columns = tuple(columns)
        self._asked = asked_questions(job.survey)

    @property
    def columns(self) -> list[str]:
        return list(self._columns)

    def select(self, *columns: str) -> PromptTable:
        """These columns alone, in this order."""
        for column in columns:
            if column not in COLUMNS:
                raise InvalidInput(f"There is no column {column!r}.", fix=nearest(column, COLUMNS))
        return PromptTable(self._job, columns)

    def __len__(self) -> int:
        return len(self._job) * sum(not asked.is_derived for asked in self._asked)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._dicts(remove_prefix=False)

    def __repr__(self) -> str:
        return str(self)

    def show(self, *, every_column: bool = False) -> None:
        """Print the first rows: each question with its prompts, or every column. System prompts only where there are
        any.
        """
        systems = islice(self.select("system_prompt")._values(), TABLE_ROWS)
        shown = SHOWN if any(system for (system,) in systems) else SHOWN[:-1]
        (self if every_column else self.select(*shown)).print()

    def relevant_columns(self) -> list[str]:
        """EDSL's name for `columns`."""
        return self.columns

    def _glance(self, most_rows: int) -> Glance:
        rows = list(islice(self._values(), most_rows))
        return Glance(columns=self.columns, rows=rows, total=len(self))

    def _kinds(self) -> list[frozenset[ColumnKind]]:
        kinds: list[set[ColumnKind]] = [set() for _ in self._columns]
        for row in self._values():
            for seen, value in zip(kinds, row, strict=True):
                seen.add(kind_of(value))
        return [frozenset(seen) for seen in kinds]

    def _values(self) -> Iterator[Values]:
        places = [COLUMNS.index(column) for column in self._columns]
        return (tuple(row[place] for place in places) for row in self._rows())

    def _target(self, path: str | Path) -> Path:
        return Path(path)  # no run file is read that an export could replace

    def _rows(self) -> Iterator[Values]:
        job, models = self._job, _models(self._job)
        prices = [None if model is None else price_of(model) for model in models]
        left_out = job.left_out(Box(Coordinates(0, 0, 0, 0), job.shape(1))) if job.conditions else ()
        ordinal = -1
        for agent_index, agent_row in enumerate(job.agents.source.rows()):
            agent = named_agent(decode_fields(agent_row), agent_index, job.survey.resolved)
            system = _system(job, agent)
            for scenario_index, scenario_row in enumerate(job.scenarios.source.rows()):
                scenario = decode_fields(scenario_row)
                for model, price in zip(models, prices, strict=True):
                    ordinal += 1
                    if ordinal in left_out:
                        continue
                    for asked, prompt, files in self._prompts(agent, scenario, ordinal):
                        own = asked.question.model
                        called, its_price = (model, price) if own is None else (own, price_of(own))
                        of_files = 0 if called is None else _tokens(called, files)
                        cost = its_price and call_cost(its_price, system, prompt, of_files, asked.question)
                        name = None if called is None else called.name
                        yield prompt, system, ordinal, asked.name, scenario_index, agent_index, name, cost

    def _prompts(
        self, agent: Fields, scenario: Fields, ordinal: int
    ) -> Iterator[tuple[AskedQuestion, str, PromptFiles]]:
        context: Context = {"agent": agent, "scenario": scenario}
        for asked in self._asked:
            if not asked.is_derived:
                yield asked, *_prompt(asked, context, ordinal)
            _put_pending(asked, context)


def _models(job: Job) -> Sequence[Model | None]:
    """The job's models; one without a name where none was given and no default is set: nothing is run here."""
    try:
        return job.models
    except ListError:
        return (None,)


def _system(job: Job, agent: Fields) -> str:
    try:
        return persona(agent, job.agents.settings.of(agent), job.survey.wording)
    except CannotRender as error:  # that agent's interviews will fail with it
        return f"<<cannot be written: {error.message}>>"


def _prompt(asked: AskedQuestion, context: Context, ordinal: int) -> tuple[str, PromptFiles]:
    try:
        prompt, _, files = asked.write(context, ordinal)
    except (CannotRender, FileUnusable):
        return asked.specimen(), NO_FILES
    return prompt, files


def _tokens(model: Model, files: PromptFiles) -> int:
    return sum(file_tokens(model.service_name, model.name, each.file) for each in files)


class _Pending:
    """An answer that is not given yet: printed as its name, with its items."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __str__(self) -> str:
        return f"<<{self._name}>>"

    __repr__ = __str__

    def __getitem__(self, key: object) -> _Pending:
        return _Pending(f"{self._name}[{key!r}]")


def _put_pending(asked: AskedQuestion, context: Context) -> None:
    record = AnswerRecord(asked.position, AnswerState.ANSWERED)
    asked.put_answer(context, record, _Pending(f"{asked.name}.answer"))
    context[asked.name]["comment"] = _Pending(f"{asked.name}.comment")
