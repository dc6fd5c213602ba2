"""The run file that readers are measured on: `python -m benchmarks.million PATH [--size N] [--text KIND] [--seed N]`.

Three questions (a choice, a number, a text) to agents of five traits; every result has 5 KB of prompts and responses,
and one in 50 has failed. The same seed gives the same results. Rows are made here and go through the run file's own
writer, since conducting a million interviews would take ten times as long. Does not cover: what a run costs (workload).
"""

import argparse
import base64
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from headrace.limits import RunOptions
from headrace.plan.job import Job
from headrace.plan.lists import AgentList, ScenarioList
from headrace.store.run_file.details import RunOutcome
from headrace.store.run_file.rows import DetailPacker, Row, Status, row_batch
from headrace.store.run_file.run_file import RunFile
from headrace.survey.agent import Agent
from headrace.survey.model import Model
from headrace.survey.questions.choice import QuestionMultipleChoice
from headrace.survey.questions.free_text import QuestionFreeText
from headrace.survey.questions.number import QuestionNumerical
from headrace.survey.record import AnswerRecord, AnswerState, Cause, Detail, Failure, Usage, encode_detail
from headrace.survey.scenario import Scenario
from headrace.survey.survey import Survey

MILLION = 1_000_000
SEED = 14
COMPRESSIBLE, INCOMPRESSIBLE = "compressible", "incompressible"
MOODS = ("Good", "Bad", "Mixed", "Calm", "Angry")
CITIES = ("Oslo", "Lima", "Accra", "Quito", "Hanoi", "Perth", "Turin", "Osaka", "Izmir", "Minsk")
WORK = ("nurse", "teacher", "driver", "cook", "baker", "clerk", "farmer")
FAILED_EVERY = 50

_SYSTEM, _PROMPT, _RESPONSE, _STORY = 900, 900, 450, 120  # letters: 900 + 3 * 900 + 3 * 450 are 5 KB
_SHARED = 450  # letters of a prompt that are the question's own text: half of it, as instructions are
_ASKED = ("How do you feel about the tram?", "Rate it from 0 to 10.", "Tell us about a ride.")
_BOOK = 4_000_000
_SYLLABLES = ("ka", "lo", "mi", "ren", "ta", "su", "vor", "e", "dis", "an", "po", "ur", "che", "li", "na", "go", "st")
_BATCH = 5_000
_STARTED_AT = 1_790_000_000.0


def job(size: int, texts: tuple[str, ...]) -> Job:
    return _survey(texts).by(AgentList(_agents(size))).by(ScenarioList([Scenario(product="tram")])).by(_model())


def write(
    path: Path, size: int = MILLION, text: str = COMPRESSIBLE, seed: int = SEED, rows_a_commit: int = _BATCH
) -> None:
    """Make the run file, sealed."""
    draw = random.Random(seed)
    book = _random_letters(draw) if text == INCOMPRESSIBLE else _random_words(draw)
    shared = "" if text == INCOMPRESSIBLE else book[:_SHARED]
    texts = tuple(f"{asked} {shared}" for asked in _ASKED)
    file = RunFile.open(path, job(size, texts), RunOptions(), lambda: None)
    try:
        note = file.journal.begin_run(0)
        rows = _Rows(draw, book, texts, file.dictionary).rows(size)
        while batch := list(islice(rows, rows_a_commit)):
            file.journal.commit([row_batch(batch)], [])
        note.ended(0, RunOutcome.COMPLETE, "[]")
    finally:
        file.close()


def _survey(texts: tuple[str, ...]) -> Survey:
    mood = QuestionMultipleChoice(question_name="mood", question_text=texts[0], question_options=MOODS)
    rating = QuestionNumerical(question_name="rating", question_text=texts[1], min_value=0, max_value=10)
    return Survey([mood, rating, QuestionFreeText(question_name="story", question_text=texts[2])])


def _model() -> Model:
    return Model("test", canned_response={"mood": "Good", "rating": 7, "story": "It was late."})


def _agents(size: int) -> Iterator[Agent]:
    for number in range(size):
        traits = {
            "age": 18 + number * 7 % 70,
            "city": CITIES[number * 3 % len(CITIES)],
            "work": WORK[number % len(WORK)],
            "income": 20_000 + number * 37 % 90_000,
            "member": number % 3 == 0,
        }
        yield Agent(name=f"respondent {number}", traits=traits)


class _Rows:
    """Makes rows; their texts are cut out of one long text at places drawn at random."""

    def __init__(self, draw: random.Random, book: str, texts: tuple[str, ...], dictionary: bytes) -> None:
        self._random = draw.random
        self._book = book
        self._texts = texts
        self._compress = DetailPacker(dictionary).compress

    def rows(self, size: int) -> Iterator[Row]:
        for ordinal in range(size):
            mood, rating = MOODS[int(self._random() * len(MOODS))], int(self._random() * 11)
            yield self._row(ordinal, mood, None if ordinal % FAILED_EVERY == 7 else rating, self._cut(_STORY))

    def _row(self, ordinal: int, mood: str, rating: int | None, story: str) -> Row:
        records = [self._record(question, value) for question, value in enumerate((mood, rating, story))]
        detail = Detail(self._cut(_SYSTEM), _STARTED_AT + ordinal, records)
        return Row(
            ordinal=ordinal,
            iteration=0,
            agent=ordinal,
            scenario=0,
            model=0,
            status=Status.FAILED if rating is None else Status.DONE,
            answers=[mood, rating, story],
            more=None,
            detail=self._compress(encode_detail(detail)),
            failures=[record.failure for record in records if record.failure is not None],
            usage=Usage(calls=3, input_tokens=900, output_tokens=330),
        )

    def _record(self, question: int, value: str | int | None) -> AnswerRecord:
        text = self._texts[question]
        failure = Failure(question, Cause.INVALID, "'eleven' is not a number") if value is None else None
        return AnswerRecord(
            question,
            AnswerState.FAILED if failure else AnswerState.ANSWERED,
            value=value,
            prompt=text + self._cut(_PROMPT - len(text)),
            raw=f"{value} {self._cut(_RESPONSE)}".encode(),
            attempts=1,
            input_tokens=300,
            output_tokens=110,
            took_ms=850,
            failure=failure,
        )

    def _cut(self, letters: int) -> str:
        start = int(self._random() * (_BOOK - letters))
        return self._book[start : start + letters]


def _random_words(draw: random.Random) -> str:
    """Words of one vocabulary, some far more frequent than others: compressible about as letters and prompts are."""
    words = ["".join(draw.choices(_SYLLABLES, k=draw.randint(1, 4))) for _ in range(3_000)]
    weights = [1 / (rank + 3) for rank in range(len(words))]
    return " ".join(draw.choices(words, weights, k=_BOOK // 4))[:_BOOK]


def _random_letters(draw: random.Random) -> str:
    """Letters without any pattern: six bits each, which zstd cannot make fewer."""
    return base64.b64encode(draw.randbytes(_BOOK)).decode()[:_BOOK]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--size", type=int, default=MILLION)
    parser.add_argument("--text", choices=(COMPRESSIBLE, INCOMPRESSIBLE), default=COMPRESSIBLE)
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    write(arguments.path, arguments.size, arguments.text, arguments.seed)


if __name__ == "__main__":
    main()
