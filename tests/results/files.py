"""Run files made by hand: any answer in any place, without a model. Uses the store alone."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from headrace.limits import RunOptions
from headrace.plan.job import Job
from headrace.plan.lists import AgentList, ModelList, ScenarioList
from headrace.store.run_file.rows import ANSWER_COLUMNS, DetailPacker, Row, Status, row_batch
from headrace.store.run_file.run_file import RunFile
from headrace.survey.agent import Agent
from headrace.survey.model import Model
from headrace.survey.questions.choice import QuestionMultipleChoice
from headrace.survey.questions.free_text import QuestionFreeText
from headrace.survey.record import AnswerRecord, AnswerState, Cause, Detail, Failure, Usage, encode_detail
from headrace.survey.scenario import Scenario
from headrace.survey.survey import Survey
from headrace.survey.values import encode_value, to_sql

_packer = cache(DetailPacker)
MISSING = object()  # an answer that failed
SKIPPED = object()


def survey(*names: str, bools: Iterable[str] = ()) -> Survey:
    held = set(bools)
    return Survey(
        QuestionMultipleChoice(question_name=name, question_text="Is it?", question_options=[True, False])
        if name in held
        else QuestionFreeText(question_name=name, question_text=f"What of {name}?")
        for name in names
    )


def job(
    asked: Survey,
    agents: Iterable[Agent] = (Agent(name="ada"),),
    scenarios: Iterable[Scenario] = (Scenario(),),
    models: Iterable[Model] = (Model("test", canned_response="x"),),
) -> Job:
    return asked.by(AgentList(agents)).by(ScenarioList(scenarios)).by(ModelList(models))


@contextmanager
def opened(path: Path, of: Job, **options: Any) -> Iterator[RunFile]:
    file = RunFile.open(path, of, RunOptions(**options), lambda: None)
    try:
        yield file
    finally:
        file.close()


def row(file: RunFile, of: Job, ordinal: int, answers: list[Any]) -> Row:
    """A sealed interview; each answer is a value, MISSING or SKIPPED."""
    cell = file.plan.coordinates(ordinal)
    records = [_record(of, position, value) for position, value in enumerate(answers)]
    values = [None if answer in (MISSING, SKIPPED) else answer for answer in answers]
    more = encode_value(values[ANSWER_COLUMNS:]).decode() if len(values) > ANSWER_COLUMNS else None
    failures = [record.failure for record in records if record.failure is not None]
    return Row(
        ordinal=ordinal,
        iteration=cell.iteration,
        agent=cell.agent,
        scenario=cell.scenario,
        model=cell.model,
        status=Status.FAILED if failures else Status.DONE,
        answers=[record.value for record in records][:ANSWER_COLUMNS],
        more=more,
        detail=_packer(file.dictionary).compress(encode_detail(Detail(f"You are number {ordinal}.", 1000.5, records))),
        failures=failures,
        usage=Usage(calls=len(answers), input_tokens=10, output_tokens=3),
    )


def _record(of: Job, position: int, answer: Any) -> AnswerRecord:
    if answer is SKIPPED:
        return AnswerRecord(position, AnswerState.SKIPPED)
    failure = Failure(position, Cause.INVALID, f"question {position} < 3") if answer is MISSING else None
    return AnswerRecord(
        position,
        AnswerState.FAILED if failure else AnswerState.ANSWERED,
        value=None if failure else to_sql(answer, as_bool=of.survey.questions[position].holds_bools),
        prompt=f"Please answer {position}.",
        raw=f"raw {answer!r}".encode(),
        comment="since it rains" if position == 0 else None,
        attempts=1,
        input_tokens=10,
        output_tokens=3,
        took_ms=25,
        failure=failure,
    )


def write(
    path: Path, of: Job, answers: Callable[[int], list[Any]], ordinals: Iterable[int] | None = None, **options: Any
) -> Path:
    """A closed run file with these interviews in it."""
    with opened(path, of, **options) as file:
        batch: list[Row] = []
        for ordinal in range(len(file.plan)) if ordinals is None else ordinals:
            batch.append(row(file, of, ordinal, answers(ordinal)))
            if len(batch) == 500:
                file.journal.commit([row_batch(batch)], [])
                batch = []
        if batch:
            file.journal.commit([row_batch(batch)], [])
    return path


def city(path: Path, people: int = 20, **options: Any) -> Path:
    """`people` agents x 2 cities: mood is Good, Bad or failed (every 7th), rating 0 to 9."""
    agents = (Agent(name=f"p{i}", traits={"age": 20 + i % 50}) for i in range(people))
    cities = [Scenario(city="Oslo"), Scenario(city="Lima")]
    return write(path, job(survey("mood", "rating"), agents, cities), city_answers, **options)


@cache
def _city_bytes(people: int) -> bytes:
    with TemporaryDirectory() as directory:
        return city(Path(directory) / "city.run", people).read_bytes()


def city_copy(path: Path, people: int = 20) -> Path:
    """The same, written once and copied: for tests that do not care that all copies are of one run."""
    path.write_bytes(_city_bytes(people))
    return path


def city_answers(ordinal: int) -> list[Any]:
    mood = MISSING if ordinal % 7 == 3 else ("Good", "Bad")[ordinal % 2]
    return [mood, (ordinal * 3) % 10]
