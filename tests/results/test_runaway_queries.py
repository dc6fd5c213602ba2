"""Queries that run away end: by their time limit, by Ctrl-C, or by the memory they take."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import apsw
import pytest

from headrace import Agent, AgentList, Model, QuestionFreeText, Results, Survey
from headrace.errors import InvalidInput, QueryTimeout, QueryTooLarge
from headrace.results.reading import stages
from headrace.results.tables import table as table_module
from headrace.results.tables import table_rows
from headrace.results.tables.table import Table
from headrace.store.connections import has_writer
from headrace.store.queries.query_clock import QueryClock
from headrace.store.queries.query_limits import MemoryBound
from headrace.store.queries.query_thread import UserQuery
from headrace.store.scratch.scratch_table import ScratchTable
from tests.results import files
from tests.results.runaway import ENDLESS, FOREVER, GREEDY, LONG, SOUGHT

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files.city(tmp_path_factory.mktemp("city") / "city.run", people=400)


@pytest.fixture
def results(path: Path) -> Iterator[Results]:
    with Results.open(path) as opened:
        yield opened


@pytest.mark.parametrize("query", ENDLESS)
def test_a_query_without_an_end_meets_its_time_limit(results: Results, query: str) -> None:
    table = results.sql(query, timeout_s=0.2)
    started_s = time.monotonic()
    with pytest.raises(QueryTimeout, match=r"longer than 0\.2 s.*timeout_s=2"):
        list(table)
    assert time.monotonic() - started_s < 30
    assert len(results.sql("select 1 from self")) == 800


READS: dict[str, Callable[[Results], object]] = {
    "len": len,
    "iterate": list,
    "table": lambda view: view.to_dicts(),
    "sort": lambda view: list(view.sort_by("agent.age")),
    "tally": lambda view: view.tally("mood").to_dicts(),
    "sql": lambda view: list(view.sql("select mood from self")),
    "sql of details": lambda view: list(view.sql("select mood_comment from self")),
    "group_by": lambda view: view.group_by("mood").agg(mean="mean(rating)").to_dicts(),
    "group_by in Python": lambda view: view.group_by("mood_comment").agg(n="count()").to_dicts(),
    "distinct": lambda view: view.distinct("mood").to_dicts(),
    "csv": lambda view: view.to_csv("never.csv"),
    "long": lambda view: view.long().to_dicts(),
    "wide": lambda view: view.wide("interview.ordinal", "mood", "rating"),
    "join": lambda view: view.join([{"mood": "Good", "n": 1}], on="mood").to_dicts(),
    "join of the other side": lambda view: view.join(view, on="rating").to_dicts(),
    "sorted table": lambda view: view.distinct("rating").sort_by("rating").to_dicts(),
    "filtered table": lambda view: view.distinct("rating").filter("rating == 3").to_dicts(),
    "last of a table": lambda view: view.distinct("rating").tail(2).to_dicts(),
    "table of a table": lambda view: view.tally("rating").group_by("count").agg(n="count()").to_dicts(),
    "length of a table": lambda view: len(view.distinct("rating").sort_by("rating")),
    "glance": lambda view: str(view.distinct("rating").sort_by("rating")),
}


@pytest.mark.parametrize("condition", ["rating > 3", "len(mood) > 3"], ids=["in SQL", "in Python"])
@pytest.mark.parametrize("read", READS)
def test_the_limit_of_a_filter_holds_for_all_that_is_made_of_it(
    results: Results, condition: str, read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    view = results.filter(condition, timeout_s=1e-9)
    with pytest.raises(QueryTimeout):
        READS[read](view)
    assert list(tmp_path.iterdir()) == []
    READS[read](results.filter(condition, timeout_s=float("inf")))


def test_the_time_between_rows_is_the_callers_own(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr(stages, "QueryClock", partial(QueryClock, clock=lambda: now_s))
    read = 0
    for _ in results.filter("rating >= 0", timeout_s=10):
        now_s += 11
        read += 1
    assert read == 800


def crossed(results: Results, timeout_s: float) -> Table:
    """All pairs of 800 results and 3,000 dicts: some seconds of work, of which no page is slow."""
    others = [{"mood": "Good", "n": n} for n in range(3_000)]
    return (
        results.mutate("key = 1")
        .select("key", "agent.age")
        .join([{"key": 1, **other} for other in others], on={"answer.key": "key"}, timeout_s=timeout_s)
    )


WORK: dict[str, Callable[[Table], object]] = {
    "count": len,
    "sort": lambda table: table.sort_by("n", reverse=True).head(1).to_dicts(),
    "order": lambda table: next(iter(table.order_by("n"))),
    "filter": lambda table: table.filter("n == 5000").to_dicts(),
    "distinct": lambda table: table.distinct("n", "agent.age").to_dicts(),
    "tally": lambda table: table.tally("n").to_dicts(),
    "group_by": lambda table: table.group_by("n").agg("median(agent.age)").to_dicts(),
    "wide": lambda table: table.wide("n", "agent.age", "mood"),
    "join": lambda table: table.join(table, on="n").head(1).to_dicts(),
    "sample": lambda table: table.sample(frac=0.5, seed=1).to_dicts(),
}


@pytest.mark.parametrize("work", WORK)
def test_work_in_temporary_files_meets_the_limit_of_the_whole_read(results: Results, work: str) -> None:
    started_s = time.monotonic()
    with pytest.raises(QueryTimeout):
        WORK[work](crossed(results, timeout_s=0.15))
    assert time.monotonic() - started_s < 30


def test_a_table_inherits_its_limit_and_each_verb_may_change_it(results: Results) -> None:
    table = results.distinct("rating", timeout_s=1e-9)
    for verb in (table.sort_by("rating"), table.head(3), table.select("rating"), table.mutate("b = rating")):
        with pytest.raises(QueryTimeout):
            list(verb)
        assert len(verb.filter("1 == 1", timeout_s=60)) > 0
    for made in (
        table.sort_by("rating", timeout_s=60), table.order_by("rating", timeout_s=60), table.distinct(timeout_s=60),
        table.tally(timeout_s=60), table.group_by("rating", timeout_s=60).count(),
        table.join(results, on="rating", timeout_s=60), table.wide("rating", "rating", "rating", timeout_s=60),
    ):  # fmt: skip
        assert len(made) > 0
    with pytest.raises(InvalidInput, match="timeout_s must be"):
        table.filter("rating > 1", timeout_s=0)


def test_rows_of_a_table_may_be_used_for_longer_than_its_limit(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    for module in (table_module, table_rows):
        monkeypatch.setattr(module, "QueryClock", partial(QueryClock, clock=lambda: now_s))
    rows = iter(results.long(timeout_s=10).sort_by("answer"))
    read = 0
    for _ in rows:
        now_s += 11
        read += 1
    assert read == 1_600


def test_a_slow_statement_in_a_temporary_file_meets_its_limit() -> None:
    with ScratchTable(1, QueryClock(0.2)) as table, pytest.raises(QueryTimeout):
        table.connection.execute(ENDLESS[0]).fetchall()


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), "1 s", True])
def test_a_limit_that_is_none_is_refused(results: Results, timeout_s: float) -> None:
    for asked in (results.filter, results.sql):
        with pytest.raises(InvalidInput, match="timeout_s must be a number of seconds above 0"):
            asked("rating > 5", timeout_s=timeout_s)


def test_greedy_queries_end_in_bounded_memory(path: Path) -> None:
    command = [sys.executable, "-m", "tests.results.runaway", str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT)
    assert found.stderr == ""
    assert int(found.stdout) < 200  # MB; it was gigabytes


def test_memory_that_sqlite_has_no_room_for_is_a_plain_error(results: Results) -> None:
    table = results.sql(GREEDY[2])
    assert not has_writer()
    with pytest.raises(QueryTooLarge, match=r"needed more than 128 MB.*fewer columns"):
        list(table)
    assert apsw.hard_heap_limit(-1) == 0
    assert len(results.sql("select 1 from self")) == 800


def test_beside_a_writer_sqlite_keeps_its_memory(tmp_path: Path) -> None:
    path = tmp_path / "live.run"
    with files.opened(path, files.job(files.survey("q"))), Results.open(path) as results:
        assert has_writer()
        with MemoryBound():  # the writer would lose its run where SQLite has no memory for it
            assert apsw.hard_heap_limit(-1) == 0
        with pytest.raises((QueryTooLarge, QueryTimeout)):
            list(results.sql(FOREVER + "select hex(randomblob(7000000)) from r", timeout_s=0.5))


def test_a_writer_that_opens_during_a_query_has_all_the_memory_there_is(tmp_path: Path) -> None:
    with MemoryBound():
        assert apsw.hard_heap_limit(-1) > 0
        with files.opened(tmp_path / "live.run", files.job(files.survey("q"))):
            assert apsw.hard_heap_limit(-1) == 0


def test_sql_beside_a_run_of_the_same_program(tmp_path: Path) -> None:
    """The writer is busy at nearly every moment at which a query looks whether there is one."""
    path = tmp_path / "live.run"
    people = AgentList(Agent({"i": i}) for i in range(5_000))
    asked = Survey([QuestionFreeText(question_name="a", question_text="A {{ agent.i }}")])
    job = asked.by(people).by(Model("test", canned_response="x"))
    job.run(path, limit=10).close()
    run = threading.Thread(target=lambda: job.run(path).close())
    run.start()
    counts: list[int] = []
    with Results.open(path) as results:
        while run.is_alive():
            counts.append(results.sql("select count(*) from self").first())
    run.join()
    assert counts == sorted(counts)
    assert counts[0] >= 10


def test_a_query_of_many_short_pieces_has_its_time_limit_too() -> None:
    """Each page of it takes less than the time between two looks at the clock."""
    clock = QueryClock(0.2)
    with closing(apsw.Connection("")) as connection:
        query = UserQuery(connection, clock)
        pieces = (query.run(lambda: time.sleep(0.005)) for _ in range(1_000))
        with pytest.raises(QueryTimeout):
            list(pieces)


def test_ctrl_c_at_any_moment_of_a_query_is_a_keyboard_interrupt(path: Path) -> None:
    program = f"""
import _thread, random, sys, threading, time
from headrace import Agent, AgentList, Model, QuestionFreeText, Results, Survey
results = Results.open({str(path)!r})
# Python drops the Ctrl-C that comes inside a weak reference's callback. Whoever presses it then presses it again.
sys.unraisablehook = lambda dropped: dropped.exc_type is KeyboardInterrupt or sys.__unraisablehook__(dropped)
heard = 0
def press(after_s, is_heard):
    time.sleep(after_s)
    _thread.interrupt_main()
    while not is_heard.wait(10):
        _thread.interrupt_main()
for each in range(40):
    is_heard = threading.Event()
    pressing = threading.Thread(target=press, args=(random.Random(each).uniform(0, 0.02), is_heard))
    try:
        pressing.start()
        while True:
            results.sql("select count(*) from self a, self b", timeout_s=600).first()
    except KeyboardInterrupt:
        heard += 1
    is_heard.set()
    pressing.join()
print(heard)
"""
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert (found.stdout, found.stderr) == ("40\n", "")


@pytest.mark.parametrize("query", [ENDLESS[0], ENDLESS[3]])
def test_ctrl_c_ends_a_query_at_once(path: Path, query: str) -> None:
    program = f"""
from headrace import Agent, AgentList, Model, QuestionFreeText, Results, Survey
table = Results.open({str(path)!r}).sql({query!r}, timeout_s=600)
print("asking", flush=True)
table.to_dicts()
"""
    assert b"KeyboardInterrupt" in interrupted(program)


def interrupted(program: str) -> bytes:
    """What a program writes to stderr that gets a Ctrl-C a moment after it has printed a line."""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"asking\n"
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        return child.communicate(timeout=30)[1]


def test_ctrl_c_ends_a_statement_in_a_temporary_file() -> None:
    program = f"""
from headrace.store.queries.query_clock import QueryClock
from headrace.store.scratch.scratch_table import ScratchTable
table = ScratchTable(1, QueryClock(600))
print("asking", flush=True)
table.connection.execute({ENDLESS[0]!r}).fetchall()
"""
    assert b"KeyboardInterrupt" in interrupted(program)


@pytest.mark.parametrize(
    "query",
    [f"select instr({LONG}, {SOUGHT} || 'b')", f"select length(replace({LONG}, {SOUGHT} || 'b', ''))"],
    ids=["instr", "replace"],
)
def test_a_long_text_is_sought_in_another_in_no_more_than_their_length(results: Results, query: str) -> None:
    assert results.sql(query, timeout_s=60).first() in (0, 14_000_000)


def test_functions_of_ours_give_what_sqlites_give(results: Results) -> None:
    values = ["'näive'", "'i'", "''", "NULL", "12.5", "1e300", "0.1", "42", "-7", "x'c3a4'", "x'61'"]
    values.append("'a' || char(0) || 'b'")
    names = ("instr", "trim", "ltrim", "rtrim")
    calls = [f"{name}({one}, {two})" for name in names for one in values for two in values]
    calls += [f"replace({one}, {two}, {three})" for one in values for two in values for three in values[:8:2]]
    asked = [f"select {call}, typeof({call})" for call in calls]
    union = " union all ".join
    for first in range(0, len(asked), 400):
        query = union(asked[first : first + 400])
        found, expected = results.sql(query), apsw.Connection("").execute(query)
        for call, one, other in zip(calls[first:], found, expected, strict=False):
            assert one == other, call


@pytest.mark.parametrize("query", ["select json_patch('{}', '{}')", "select 'a' like '" + "%a" * 200 + "'"])
def test_what_cannot_be_bounded_is_refused(results: Results, query: str) -> None:
    with pytest.raises(InvalidInput):
        list(results.sql(query))


def test_a_long_answer_is_sought_in_another_by_python(tmp_path: Path) -> None:
    answers = ["a" * 2_000_000, "a" * 1_000_000 + "b"]
    found = files.write(tmp_path / "long.run", files.job(files.survey("text", "part")), lambda _: answers)
    with Results.open(found) as opened:
        assert len(opened.filter("part in text")) == 0
        assert len(opened.filter("startswith(text, part)")) == 0
        assert len(opened.filter("'aaa' in text")) == 1
