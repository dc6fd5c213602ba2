"""One interview by its place or its number, the last few, and directions of an order: found without reading all."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from headrace.errors import InvalidInput
from headrace.plan.lists import AgentList
from headrace.results.results import Results
from headrace.store.run_file import reader as reader_module
from headrace.store.run_file.bulk.block_counts import EVERY_ROW, BlockCounts
from headrace.store.run_file.rows import row_batch
from headrace.survey.agent import Agent
from headrace.survey.model import Model
from tests.results import files

MANY = 4_000


def ordinals(results: Results) -> list[int]:
    return [result.ordinal for result in results]


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Results]:
    with Results.open(files.city_copy(tmp_path / "city.run")) as opened:
        yield opened


@pytest.fixture
def holed(tmp_path: Path) -> Iterator[Results]:
    of = files.job(files.survey("q"), [Agent({"n": n}) for n in range(100)])
    with Results.open(files.write(tmp_path / "holed.run", of, lambda n: [n], range(1, 20, 3))) as opened:
        yield opened


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    of = files.job(files.survey("q"), [Agent({"n": n}) for n in range(MANY)])
    return files.write(tmp_path_factory.mktemp("large") / "large.run", of, lambda n: [n % 10])


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many steps SQLite's machine has taken since the last call, on every connection to a run file."""
    taken: list[int] = []
    open_run_file = reader_module.open_run_file

    def note(event: dict[str, Any]) -> None:
        taken.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

    def traced(path: Path, **options: Any) -> apsw.Connection:
        connection = open_run_file(path, **options)
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
        return connection

    monkeypatch.setattr(reader_module, "open_run_file", traced)

    def since() -> int:
        counted = sum(taken)
        taken.clear()
        return counted

    return since


def test_an_interview_is_found_by_its_number(holed: Results) -> None:
    assert [holed.at(n).answer["q"] for n in (1, 4, 19)] == [1, 4, 19]
    assert holed[1].ordinal == 4
    with pytest.raises(IndexError, match="interview 2 has no row: it was not asked yet, or `where`"):
        holed.at(2)
    with pytest.raises(IndexError, match="no interview 100 in a plan of 100"):
        holed.at(100)
    with pytest.raises(IndexError, match="no interview -1"):
        holed.at(-1)


def test_an_interview_is_found_only_among_these_results(results: Results) -> None:
    assert results.filter("rating > 5").at(2).answer["rating"] == 6
    assert results.sort_by("rating").filter("len(mood) == 4").at(2).ordinal == 2
    assert results[10:20].at(15).ordinal == 15
    assert results.sort_by("rating")[:5].at(10).answer["rating"] == 0
    for view in (results.filter("rating > 6"), results.filter("len(mood) == 3"), results[10:20], results.head(2)):
        with pytest.raises(IndexError, match="interview 2 is in the file, but not among these"):
            view.at(2)
    with pytest.raises(InvalidInput, match="Each run file numbers its own"):
        (results + results).at(2)


@pytest.mark.parametrize(
    "view",
    [
        lambda results: results,
        lambda results: results.filter("rating > 4"),
        lambda results: results.filter("len(mood) == 4"),
        lambda results: results.sort_by("rating"),
        lambda results: results.sort_by("rating", "mood", reverse=[True, False]),
        lambda results: results.sort_by("mood").filter("rating != 3"),
        lambda results: results.shuffle(seed=3),
        lambda results: results[5:30],
        lambda results: results.filter("rating > 4")[2:9],
        lambda results: results.sort_by("rating")[3:20].sort_by("mood"),
        lambda results: results.filter("rating > 100"),
        lambda results: results + results.filter("rating < 3"),
        lambda results: (results + results).sort_by("rating", reverse=True),
    ],
)
def test_places_from_the_end_are_those_of_a_list(results: Results, view: Callable[[Results], Results]) -> None:
    chosen = view(results)
    expected = ordinals(chosen)
    assert ordinals(chosen.tail(3)) == expected[-3:]
    assert ordinals(chosen.tail(100)) == expected
    assert ordinals(chosen.tail(0)) == []
    assert ordinals(chosen.tail(6).tail(2)) == expected[-2:]
    assert ordinals(chosen.tail(6).head(2)) == expected[-6:][:2]
    assert ordinals(chosen.tail(6).filter("rating > 2")) == [
        each.ordinal for each in list(chosen)[-6:] if each.answer["rating"] > 2
    ]
    for bounds in (slice(-4, None), slice(-4, -1), slice(None, -2), slice(1, -1), slice(-100, 3)):
        assert ordinals(chosen[bounds]) == expected[bounds]
        assert len(chosen[bounds]) == len(expected[bounds])
    for place in (-1, -5, 0, len(expected) - 1, -len(expected)):
        if -len(expected) <= place < len(expected):
            assert chosen[place].ordinal == expected[place]
    for place in (len(expected), -len(expected) - 1):
        with pytest.raises(IndexError, match="there is no result"):
            chosen[place]


def test_each_column_of_an_order_has_its_direction(results: Results) -> None:
    rows = list(results)
    expected = sorted(rows, key=lambda row: (row.answer["rating"], -row.agent["age"]))
    found = results.sort_by("rating", "agent.age", reverse=[False, True])
    assert ordinals(found) == ordinals(expected)  # pyright: ignore[reportArgumentType]
    twice = results + results
    assert ordinals(twice.order_by("rating", "agent.age", reverse=(False, True))[::])[::2] == ordinals(found)
    with pytest.raises(InvalidInput, match="2 columns and 1 directions"):
        results.sort_by("rating", "agent.age", reverse=[True])


def test_failed_is_a_name_of_filters(results: Results) -> None:
    failed = [result.ordinal for result in results if result.status == "failed"]
    assert ordinals(results.filter("failed")) == failed
    assert ordinals(results.filter("not failed and rating > 5")) == ordinals(
        results.filter("interview.status == 'done' and rating > 5")
    )
    assert results.select("failed").filter("failed").to_list() == [True] * len(failed)
    assert results.tally("interview.failed", output="dict") == {True: len(failed), False: 40 - len(failed)}
    assert "interview.failed" not in results.columns


def test_a_question_called_failed_comes_first(tmp_path: Path) -> None:
    path = files.write(tmp_path / "a.run", files.job(files.survey("failed")), lambda _: ["no"])
    with Results.open(path) as results:
        assert len(results.filter("failed == 'no'")) == 1
        assert len(results.filter("interview.failed")) == 0


@pytest.mark.parametrize("chosen", ["every third", "an early hole", "the last only", "a window in flight"])
def test_places_in_a_file_with_holes_are_found_in_few_steps(
    tmp_path: Path, steps: Callable[[], int], chosen: str
) -> None:
    stored = {
        "every third": list(range(1, MANY, 3)),
        "an early hole": [n for n in range(MANY) if n != 5],
        "the last only": [MANY - 1],
        "a window in flight": [*range(MANY - 600), *range(MANY - 600, MANY - 100, 7)],
    }[chosen]
    of = files.job(files.survey("q"), [Agent({"n": n}) for n in range(MANY)])
    path = files.write(tmp_path / "holed.run", of, lambda n: [n % 10], stored)
    with Results.open(path) as results:
        len(results.filter("q >= 0"))
        everything = steps()
        assert results[len(stored) - 1].ordinal == stored[-1]  # counts the blocks
        assert steps() < everything + 2_000
        for place in range(0, len(stored), max(1, len(stored) // 11)):
            assert results[place].ordinal == stored[place]
            assert steps() < max(everything / 5, 2_000)
        assert ordinals(results[len(stored) // 2 : len(stored) // 2 + 5]) == stored[len(stored) // 2 :][:5]
        assert len(results) == len(stored)
        assert steps() < max(everything / 5, 2_000)
        with pytest.raises(IndexError):
            results[len(stored)]


@pytest.mark.parametrize("asked", [{"limit": 3_000}, {"sample": 1_000, "seed": 4}, {"limit": 2_000, "sample": 900}])
def test_places_in_what_a_run_was_asked_for_are_found_in_few_steps(
    tmp_path: Path, steps: Callable[[], int], asked: dict[str, int]
) -> None:
    path = tmp_path / "scoped.run"
    people = AgentList(Agent(name=f"p{n}") for n in range(MANY))
    job = files.survey("q").by(people).by(Model("test", canned_response="x"))
    with job.run(path, progress_bar=False, **asked) as results:
        assert [result.ordinal for result in job.run(path, sample=1_500, seed=9, progress_bar=False)]
        expected = ordinals(results)
        len(results.filter("q == 'x'"))
        everything = steps()
        assert results[len(expected) // 2].ordinal == expected[len(expected) // 2]
        assert len(results) == len(expected)
        steps()
        for place in range(0, len(expected), len(expected) // 7):
            assert results[place].ordinal == expected[place]
            assert len(results) == len(expected)
            assert steps() < everything / 2
        with pytest.raises(IndexError):
            results[len(expected)]


def test_places_follow_a_run_that_goes_on_and_only_what_is_not_full_is_counted_again(
    tmp_path: Path, steps: Callable[[], int]
) -> None:
    path = tmp_path / "live.run"
    of = files.job(files.survey("q"), [Agent({"n": n}) for n in range(MANY)])
    order = random.Random(3)
    left, stored = list(range(MANY)), list[int]()
    with files.opened(path, of) as file, Results.open(path) as results:
        while left:
            window = left[:400]
            batch = [window.pop(order.randrange(len(window))) for _ in range(min(250, len(window)))]
            left = sorted({*left} - {*batch})
            stored = sorted([*stored, *batch])
            file.journal.commit([row_batch([files.row(file, of, n, ["x"]) for n in batch])], [])
            steps()
            for place in (0, len(stored) // 2, len(stored) - 1):
                assert results[place].ordinal == stored[place]
            assert len(results) == len(stored)
            assert steps() < 20_000  # a count of all takes more than that in the end
        assert ordinals(results) == stored == list(range(MANY))


def test_blocks_of_ordinals_stay_few_in_a_large_file(tmp_path: Path) -> None:
    writer = apsw.Connection(str(tmp_path / "large.db"))
    writer.execute("CREATE TABLE interviews(ordinal INTEGER PRIMARY KEY)")
    connection = apsw.Connection(str(tmp_path / "large.db"))
    stored = [*range(600), 70_000, 10**6, 10**6 + 1, 10**9, 2**40]
    blocks = BlockCounts()
    for most in range(1, len(stored) + 1):
        writer.execute("INSERT INTO interviews VALUES(?)", (stored[most - 1],))
        for place in {0, most // 2, most - 1}:
            assert blocks.ordinal_at(connection, EVERY_ROW, place) == stored[place]
        assert blocks.ordinal_at(connection, EVERY_ROW, most) is None
        for stop in (0, 1, 4, 256, 257, 10**6 + 1, 2**50):
            assert blocks.count_below(connection, EVERY_ROW, stop) == sum(n < stop for n in stored[:most])


def test_the_length_and_what_is_at_the_ends_is_found_without_reading_all(large: Path, steps: Callable[[], int]) -> None:
    with Results.open(large) as results:
        asked: dict[str, Callable[[], object]] = {
            "len": lambda: len(results),
            "first": lambda: results[0],
            "last": lambda: results[-1],
            "middle": lambda: results[MANY // 2],
            "number": lambda: results.at(MANY // 2),
            "head": lambda: ordinals(results.head(3)),
            "tail": lambda: ordinals(results.tail(3)),
            "slice": lambda: ordinals(results[MANY // 2 : MANY // 2 + 3]),
            "end of a slice": lambda: ordinals(results[-3:]),
            "filtered head": lambda: ordinals(results.filter("q == 5").head(3)),
            "filtered tail": lambda: ordinals(results.filter("q == 5").tail(3)),
            "last of a filter": lambda: results.filter("q == 5")[-3],
            "number in a filter": lambda: results.filter("q == 0").at(MANY // 2),
        }
        len(results.filter("q == 5"))
        everything = steps()
        for name, ask in asked.items():
            ask()
            assert steps() < everything / 5, name
