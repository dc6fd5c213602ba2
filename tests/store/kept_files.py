"""The jobs behind the run files and engine files in tests/data, which earlier versions of Headrace wrote.

    format_1    by `make` at commit 47f6a53, before rows had checksums (file version 1)
    format_2    by `make` at commit 5bce54b (file version 2); without `wide`

The files are kept as they were written, compressed. Does not cover: what is tested with them
(tests.store.test_kept_files).
"""

import asyncio
import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from headrace import (
    Agent,
    AgentList,
    Engine,
    Job,
    Model,
    QuestionFreeText,
    QuestionMultipleChoice,
    QuestionNumerical,
    ScenarioList,
    Survey,
    task,
)
from headrace.errors import RunFailed
from headrace.store.run_file.rows import row_batch
from headrace.survey.record import AnswerRecord, AnswerState
from tests.results.files import city, job, opened, row, survey

DATA = Path(__file__).parents[1] / "data"
FORMATS = ("format_1", "format_2")
_MODULE = "tests.store.format_1"  # where the functions were when the engine files were written
WIDE = 1_003
WIDE_ANSWERS = [*range(WIDE - 3), "a1000", [1, None], 2**70]
STORED_FIRST = 8  # of the plain survey's interviews
BLOB_BYTES = 300_000


def unpacked(name: str, folder: Path, written_as: str = "format_1") -> Path:
    """Copy one of the kept files into `folder`, to be opened and written."""
    path = folder / f"{name}.run"
    path.write_bytes(gzip.decompress((DATA / written_as / f"{name}.run.gz").read_bytes()))
    return path


def plain_job(people: int = 6) -> Job:
    """Two questions, the second of which quotes the answer to the first."""
    asked = Survey(
        [
            QuestionMultipleChoice(
                question_name="mood",
                question_text="How do you feel about {{ scenario.city }}?",
                question_options=["Good", "Bad"],
            ),
            QuestionNumerical(
                question_name="rating", question_text="You said {{ mood.answer }}. Rate it.", min_value=0, max_value=10
            ),
        ]
    )
    agents = AgentList(Agent(name=f"p{i}", traits={"age": 20 + i, "note": "é\n" * i}) for i in range(people))
    model = Model("test", canned_response={"mood": "Good", "rating": 7})
    return asked.by(agents).by(ScenarioList.from_list("city", ["Oslo", "Lima"])).by(model)


def failing_job() -> Job:
    asked = Survey(
        [
            QuestionFreeText(question_name="first", question_text="Who are you, {{ agent.age }}?"),
            QuestionNumerical(question_name="second", question_text="How many?", min_value=0, max_value=3),
        ]
    )
    agents = AgentList(Agent(name=f"q{i}", traits={"age": i}) for i in range(4))
    return asked.by(agents).by(Model("test", canned_response={"first": "I", "second": "many"}))


def mapped_job() -> Job:
    rows = [{"text": f"row {i}", "weight": i / 2} for i in range(5)]
    schema = {"type": "object", "properties": {"label": {"type": "string"}, "sure": {"type": "boolean"}}}
    model = Model("test", canned_response={"label": "fine", "sure": True})
    return Job.map("Label this: {{ text }}", rows, schema=schema).by(model)


def wide_job() -> Job:
    return job(survey(*(f"q{i}" for i in range(WIDE))))


def pending_job() -> Job:
    return job(survey("one", "two"), [Agent(name="a"), Agent(name="b")])


@task(name=f"{_MODULE}:noting")
async def noting(ctx: Any, topic: str) -> str:
    page = await ctx.step("search", _search, topic)
    for i in range((ctx.state or {"i": 0})["i"], 3):
        await ctx.step(f"note-{i}", _note, page[:20], i)
        await ctx.checkpoint({"i": i + 1})
    return f"{topic}: {len(page)}"


@task(name=f"{_MODULE}:waiting")
async def waiting(ctx: Any) -> str:
    await ctx.step("before", _note, "before", 1)
    return f"got {await ctx.receive()}"


@task(name=f"{_MODULE}:failing")
async def failing(_ctx: Any) -> None:
    raise ValueError("as it should")


async def _search(topic: str) -> str:
    return topic * (BLOB_BYTES if topic == "x" else 10)


async def _note(page: str, number: int) -> str:
    return f"{page} {number}"


def make(folder: Path) -> None:
    expected: dict[str, Any] = {}
    for name, made in (("failing", failing_job()), ("mapped", mapped_job())):
        with made.run(folder / f"{name}.run") as results:
            expected[name] = results.to_dicts(remove_prefix=False)
    with plain_job().run(folder / "plain.run", limit=STORED_FIRST) as results:
        expected["plain"] = results.to_dicts(remove_prefix=False)
    city(folder / "city.run")
    with opened(folder / "wide.run", wide_job()) as file:
        file.journal.commit([row_batch([row(file, wide_job(), 0, WIDE_ANSWERS)])], [])
    with opened(folder / "pending.run", pending_job()) as file:
        kept = AnswerRecord(0, AnswerState.ANSWERED, value="kept", prompt="What of one?", raw=b"kept", attempts=1)
        file.journal.commit([], [(1, kept)])
    asyncio.run(_make_engine_file(folder / "engine.run"))
    (folder / "expected.json").write_text(json.dumps(expected, indent=1))
    for path in folder.glob("*.run"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()


async def _make_engine_file(path: Path) -> None:
    async with Engine(path, isolation="inline") as engine:
        short, long = await engine.submit(noting, "y", key="short"), await engine.submit(noting, "x", key="long")
        print(await short.result(), await long.result())
        failed = await engine.submit(failing, key="failed")
        try:
            await failed.result()
        except RunFailed as error:
            print(error)
        await engine.submit(waiting, key="waiting")
        await asyncio.sleep(0.5)  # it waits for a message by then
    with closing(sqlite3.connect(path)) as connection:  # a traceback has the paths of the machine it was made on
        connection.execute("UPDATE runs SET error = 'ValueError: as it should' WHERE name = 'failed'")
        connection.commit()
        connection.execute("VACUUM")
