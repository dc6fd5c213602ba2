"""Files that somebody else has prepared: opening, reading and resuming one must not harm the reader."""

import asyncio
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from headrace import Engine, Job, Results
from headrace.errors import HeadraceError, InvalidInput, RunFileDamaged
from headrace.store.connections import open_writer
from headrace.store.engine_file.engine_file import EngineFile
from headrace.store.engine_file.engine_schema import RunState
from headrace.store.run_file.reader import open_run_file
from tests.store.forging import fitted
from tests.store.kept_files import plain_job, unpacked


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("finished") / "finished.run"
    plain_job().run(path).close()
    return path


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(finished, tmp_path / "copy.run"))


def edit(path: Path, *statements: str) -> None:
    """As any SQLite tool would, with nothing forbidden."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def rewrite(path: Path, name: str, old: str, new: str) -> None:
    """Change what the file says of one of its tables."""
    old, new = (text.replace("'", "''") for text in (old, new))
    edit(path, f"UPDATE sqlite_schema SET sql = replace(sql, '{old}', '{new}') WHERE name = '{name}'")


def ways(path: Path) -> Iterator[Callable[[], object]]:
    """Everything that is done with a run file."""
    yield from ways_to_read(path)
    yield lambda: Job.open(path).run(path).close()
    yield lambda: plain_job().run(path, n=2).close()
    yield lambda: plain_job(7).run(path, n=2, extend=True).close()


def ways_to_read(path: Path) -> Iterator[Callable[[], object]]:
    yield lambda: [result.answer for result in Results.open(path)]
    yield lambda: Results.open(path).sql("select * from self").to_dicts()
    yield lambda: Results.open(path).filter("answer.rating > 5").sort_by("answer.mood").to_dicts()
    yield lambda: Results.open(path).sql("select count(*), max(rating_comment), mood_user_prompt from self").to_dicts()
    yield lambda: Results.open(path).mutate("twice = interview.ordinal * 2").sql("select * from self").to_dicts()
    yield lambda: (Results.open(path) + Results.open(path)).sql("select * from self").to_dicts()
    yield lambda: Results.open(path).tally("answer.mood", "agent.age").to_dicts()
    yield lambda: Results.open(path).group_by("agent.age").agg(n="count()", best="max(rating)").to_dicts()
    yield lambda: Results.open(path).distinct("answer.mood").to_dicts()
    yield lambda: Results.open(path).plot("answer.mood", by="agent.age").svg()
    yield lambda: Results.open(path).plot("answer.rating").text()
    yield lambda: Results.open(path).select("*", "*_comment").to_csv(path.with_suffix(".csv"))
    yield lambda: Results.open(path).to_sqlite(path.with_suffix(".sqlite"))
    yield lambda: Results.open(path).stats()


def refused(path: Path, words: str) -> None:
    before = path.read_bytes()
    for way in ways(path):
        with pytest.raises(RunFileDamaged, match=words):
            way()
    assert path.read_bytes() == before


def test_a_name_in_a_file_is_never_sql(tmp_path: Path) -> None:
    copy = unpacked("plain", tmp_path)  # without checksums, which would be found to be wrong
    target = tmp_path / "written.db"
    evil = f"""x" FROM interviews i; ATTACH '{target}' AS evil; CREATE TABLE evil.t(x); --"""
    edit(copy, "UPDATE questions SET name = '{}' WHERE position = 0".format(evil.replace("'", "''")))
    for way in ways(copy):
        try:
            way()
        except HeadraceError:
            continue
    assert not target.exists()


NAMES = [
    'quo"te',
    "apo'strophe",
    "x' FROM meta; --",
    "self",
    "interview.ordinal",
    "k.c0",
    "n" * 200_000,
    "",
    "{{ x }}",
]


@pytest.mark.parametrize("name", NAMES, ids=[name[:20] for name in NAMES])
@pytest.mark.parametrize(
    "of", ["UPDATE questions SET name = {} WHERE position = 0", "UPDATE fields SET name = {} WHERE name = 'age'"]
)
def test_a_strange_name_in_a_file_is_read_or_refused_in_our_words(tmp_path: Path, name: str, of: str) -> None:
    copy = unpacked("plain", tmp_path)
    edit(copy, of.format("'{}'".format(name.replace("'", "''"))))
    before = copy.read_bytes()
    for way in ways_to_read(copy):
        with suppress(HeadraceError):
            way()
    assert copy.read_bytes() == before
    assert {path.suffix for path in tmp_path.iterdir()} <= {".run", ".csv", ".sqlite", ".gz"}


@pytest.mark.parametrize(
    "name", ["CAST(x'006162' AS TEXT)", "CAST(x'61006200' AS TEXT)", "x'ff'", "CAST(x'ff' AS TEXT)", "7"]
)
def test_a_name_that_is_no_text_is_read_or_refused_in_our_words(tmp_path: Path, name: str) -> None:
    for number, of in enumerate(
        ("UPDATE questions SET name = {} WHERE position = 0", "UPDATE fields SET name = {} WHERE name = 'age'")
    ):
        (tmp_path / str(number)).mkdir()
        copy = unpacked("plain", tmp_path / str(number))
        edit(copy, of.format(name))
        before = copy.read_bytes()
        for way in ways_to_read(copy):
            with suppress(HeadraceError):
                way()
        assert copy.read_bytes() == before


def test_an_answer_that_cannot_be_decoded_is_damage_to_every_table(tmp_path: Path) -> None:
    copy = unpacked("plain", tmp_path)
    edit(copy, "UPDATE interviews SET a0 = x'7b22' WHERE ordinal = 1")
    for read in (
        lambda results: results.tally("answer.mood").to_dicts(),
        lambda results: results.distinct("answer.mood").to_dicts(),
        lambda results: results.group_by("answer.mood").agg(n="count()").to_dicts(),
        lambda results: (
            results.group_by("agent.age").agg(first="first(answer.mood)", top="max(answer.mood)").to_dicts()
        ),
    ):
        with Results.open(copy) as results, pytest.raises(RunFileDamaged, match="damaged"):
            read(results)


def test_a_field_in_a_file_is_never_sql(tmp_path: Path) -> None:
    copy = unpacked("plain", tmp_path)
    other = tmp_path / "secret.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'a secret' AS x")
        connection.commit()
    evil = f"""age') AS x FROM interviews i; ATTACH '{other}' AS o; SELECT * FROM o.t; --"""
    edit(copy, "UPDATE fields SET name = '{}' WHERE name = 'age'".format(evil.replace("'", "''")))
    with Results.open(copy) as results:
        assert "a secret" not in str(results.sql("select * from self").to_dicts())


CODE = [
    "CREATE TRIGGER t AFTER INSERT ON interviews BEGIN UPDATE models SET name = 'mine'; END",
    "CREATE TRIGGER t AFTER UPDATE ON counters BEGIN DELETE FROM interviews; END",
    "CREATE INDEX i ON interviews(hex(zeroblob(a0)))",
    "CREATE INDEX i ON interviews(a0) WHERE hex(a0) > 1",
    "CREATE UNIQUE INDEX i ON interviews(model, ordinal)",
]


@pytest.mark.parametrize("code", CODE)
def test_code_on_a_table_of_ours_is_refused(copy: Path, code: str) -> None:
    edit(copy, code)
    refused(copy, "code that Headrace has not made")


CHANGED = [
    ("interviews", "more", "more, extra AS (hex(zeroblob(1000000000)))"),
    ("interviews", "status", "status CHECK(hex(zeroblob(1000000000)) <> '')"),
    ("interviews", "status", "status DEFAULT (hex(zeroblob(10)))"),
    ("interviews", "iteration", "iteration COLLATE NOCASE"),
    ("interviews", "a0", "a0 TEXT"),
    ("interviews", "a1, ", ""),
    ("meta", "value", "value REFERENCES models(position) ON DELETE CASCADE"),
    ("details", "BLOB", "TEXT"),
]


@pytest.mark.parametrize(("table", "old", "new"), CHANGED)
def test_a_table_that_is_not_as_we_make_it_is_refused(copy: Path, table: str, old: str, new: str) -> None:
    rewrite(copy, table, old, new)
    refused(copy, f"table {table} is not the one|damaged")


INSTEAD = [
    "CREATE VIEW interviews AS SELECT * FROM moved",
    "CREATE VIEW interviews AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
    "CREATE VIRTUAL TABLE interviews USING fts5(a0)",
    "CREATE TABLE interviews AS SELECT * FROM moved",
]


@pytest.mark.parametrize("statement", INSTEAD)
def test_what_only_has_the_name_of_a_table_of_ours_is_refused(copy: Path, statement: str) -> None:
    edit(copy, "ALTER TABLE interviews RENAME TO moved", "DROP VIEW results", statement)
    refused(copy, "interviews")


def test_a_missing_table_is_refused(copy: Path) -> None:
    edit(copy, "DROP VIEW results", "DROP TABLE failures")
    refused(copy, "no failures")


def test_what_a_user_added_beside_our_tables_is_left_alone(copy: Path) -> None:
    edit(
        copy,
        "CREATE TABLE mine(x CHECK(x > 0))",
        "CREATE INDEX by_mood ON interviews(a0, model DESC)",
        "CREATE VIEW my_view AS SELECT count(*) FROM interviews",
        "DROP VIEW results",
        "CREATE VIEW results AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
        "ANALYZE",
    )
    for way in ways(copy):
        way()
    with Results.open(copy) as results:
        assert len(list(results)) == 28
        for view in ("my_view", "results"):
            with pytest.raises(InvalidInput, match=f"no such table: {view}"):
                results.sql(f"select * from {view}").to_dicts()


@pytest.mark.parametrize("name", ["runs", "steps"])
async def test_an_engine_file_with_code_in_it_is_refused(tmp_path: Path, name: str) -> None:
    path = unpacked("engine", tmp_path)
    edit(path, f"CREATE TRIGGER t AFTER INSERT ON {name} BEGIN DELETE FROM runs; END")
    with pytest.raises(RunFileDamaged, match="code that Headrace has not made"):
        async with Engine(path, isolation="inline"):
            pass


@pytest.mark.parametrize("opened", [open_run_file, open_writer])
def test_a_connection_can_reach_nothing_but_its_file(copy: Path, opened: Callable[[Path], apsw.Connection]) -> None:
    with closing(opened(copy)) as connection:
        for statement in (
            f"ATTACH '{copy}' AS other",
            "CREATE VIRTUAL TABLE v USING fts5(x)",
            "CREATE TEMP TRIGGER t AFTER INSERT ON interviews BEGIN SELECT 1; END",
            "SELECT load_extension('x')",
            f"VACUUM INTO '{copy}.other'",
        ):
            with pytest.raises(apsw.Error):
                connection.execute(statement).fetchall()
        connection.execute("PRAGMA writable_schema=ON").fetchall() if opened is open_writer else None
        with pytest.raises(apsw.Error):
            connection.execute("UPDATE sqlite_schema SET sql = ''").fetchall()


def test_ctrl_c_ends_a_query_that_never_would(copy: Path) -> None:
    program = f"""
from headrace import Results
query = "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r, self"
table = Results.open({str(copy)!r}).sql(query)
print("asking", flush=True)
table.to_dicts()
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"asking\n"
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=30)
    assert child.returncode != 0
    assert b"KeyboardInterrupt" in err


FORGED = [
    "UPDATE counters SET value = -1000000 WHERE name = 'cost'",
    "UPDATE counters SET value = 9223372036854775807 WHERE name = 'calls'",
    "UPDATE counters SET value = 9e999 WHERE name = 'cost'",
    "UPDATE agents SET fields = 'null'",
    "UPDATE agents SET fields = '{\"age\": 1e999}'",
    f"UPDATE agents SET fields = '{{\"age\": {'[' * 100_000}{']' * 100_000}}}'",
    "UPDATE meta SET value = json_set(value, '$.names', json('{\"scenario\": \"nobody.city\"}')) WHERE key = 'survey'",
    'UPDATE models SET model = \'{"name": "test", "service": ["test"], "parameters": {}}\'',
]


@pytest.mark.parametrize("change", FORGED)
def test_values_that_no_run_writes_are_refused_although_their_checksums_fit(copy: Path, change: str) -> None:
    edit(copy, change)
    with pytest.raises(RunFileDamaged):
        Job.open(fitted(copy)).run()


@pytest.mark.parametrize(
    ("question", "record"),
    [
        (9_999, [9_999, 0, None]),
        (-1, [-1, 0, None]),
        (0, [0, 0, ["a list"]]),
        (0, [0, 0, 2**64 - 1]),
        (0, [0, 0, "x", "", b"", None, 1, -1_000_000]),  # tokens that would be given back to a budget
        (0, [0, 0, "x", "", b"", None, 1, 0, 0, 0, 0, False, None, [0, 0, -1e6]]),  # and money
    ],
)
def test_an_answer_in_flight_that_no_run_writes_is_refused(copy: Path, question: int, record: list[object]) -> None:
    with closing(sqlite3.connect(copy)) as connection, connection:
        last = connection.execute("SELECT max(ordinal) FROM interviews").fetchone()
        for table in ("interviews", "details"):
            connection.execute(f"DELETE FROM {table} WHERE ordinal = ?", last)
        connection.execute("UPDATE counters SET value = value - 1 WHERE name = 'done'")
        in_flight = (*last, question, msgspec.msgpack.encode(record))
        connection.execute("INSERT INTO pending(ordinal, question, record) VALUES(?, ?, ?)", in_flight)
    with pytest.raises(RunFileDamaged, match="in flight"):
        Job.open(fitted(copy)).run()


# Values in an engine file.


async def doubled(ctx: Any, number: int) -> int:
    return 2 * number


async def waited(ctx: Any) -> object:
    return await ctx.receive()


@pytest.fixture(scope="module")
def engine_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a run that is done, number 1, and one that waits for a message."""
    path = tmp_path_factory.mktemp("engine") / "engine.run"

    async def make() -> None:
        async with Engine(path, isolation="inline") as engine, asyncio.timeout(20):
            assert await (await engine.submit(doubled, 2)).result() == 4
            run = await engine.submit(waited)
            while run.status().state is not RunState.RECEIVING:
                await asyncio.sleep(0.01)

    asyncio.run(make())
    return path


WILD = [
    "UPDATE runs SET state = 'bogus'",
    "UPDATE runs SET priority = -5",
    "UPDATE runs SET priority = 9223372036854775807",
    "UPDATE runs SET epoch = 9223372036854775807",
    "UPDATE runs SET deaths = -1",
    "UPDATE runs SET parent = id",
    "UPDATE runs SET parent = 3 - id",
    "UPDATE runs SET parent = -1",
    "UPDATE runs SET id = 9223372036854775807 WHERE id = 2",
    "UPDATE runs SET result = x'c1' WHERE id = 1",
    "UPDATE runs SET result_blob = 7 WHERE id = 1",
    "UPDATE runs SET resume_at = 'soon', state = 'sleeping', ended_at = NULL",
    "INSERT INTO messages VALUES(9223372036854775807, 2, x'30', 1)",
    "INSERT INTO meta VALUES('warden', 'x')",
    "INSERT INTO meta VALUES('warden', -1)",
    "INSERT INTO meta VALUES('warden', 99999999999)",
    "UPDATE meta SET value = 'x' WHERE key = 'clock'",
    "UPDATE meta SET value = 5 WHERE key = 'token'",
]


@pytest.mark.parametrize("forged", WILD)
async def test_an_engine_file_with_wild_values_is_refused_in_words(
    engine_file: Path, tmp_path: Path, forged: str
) -> None:
    path = Path(shutil.copy(engine_file, tmp_path / "copy.run"))
    edit(path, forged)
    with pytest.raises(RunFileDamaged):
        await used(path)


def test_a_refused_engine_file_is_closed_while_its_error_is_still_held(engine_file: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(engine_file, tmp_path / "copy.run"))
    edit(path, "UPDATE meta SET value = 5 WHERE key = 'token'")
    with pytest.raises(RunFileDamaged) as refused:
        EngineFile.open(path)
    opened = [entry.readlink() for entry in Path("/proc/self/fd").iterdir() if entry.exists()]
    assert refused.value.__traceback__ is not None  # it holds the frames, and so would hold a connection
    assert path not in opened


async def used(path: Path) -> None:
    async with Engine(path, isolation="inline") as engine, asyncio.timeout(20):
        assert await (await engine.submit(doubled, 2)).result() == 4
        run = await engine.submit(waited)
        await run.send("go on")
        await run.result()
