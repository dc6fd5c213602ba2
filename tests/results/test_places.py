"""One interview by its place or its number, the last few, and directions of an order: found without reading all."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from headrace.errors import InvalidInput
from headrace.results.results import Results
from headrace.store.run_file import reader as reader_module
from headrace.survey.agent import Agent
from tests.results import files

MANY = 4_000


def ordinals(results: Results) -> list[int]:
    return [result.ordinal for result in results]


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Results]:
    with Results.open(files.city(tmp_path / "city.run")) as opened:
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
    with pytest.raises(IndexError, match="interview 2 has no row yet"):
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
