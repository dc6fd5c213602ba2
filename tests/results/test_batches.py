"""Columns read in batches: the same values as row by row, and the same refusals."""

import math
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import apsw
import pytest

from headrace.errors import HeadraceError, RunFileDamaged
from headrace.results.reading import bulk_reading, stages
from headrace.results.results import Results
from headrace.store.run_file.bulk import column_pages
from headrace.survey.agent import Agent
from headrace.survey.model import Model
from headrace.survey.scenario import Scenario
from tests.results import files
from tests.store.damage import CHANGED_ROWS
from tests.store.forging import fitted
from tests.store.kept_files import unpacked

ANSWERS = [
    "Good", 7, -3, 2.5, 2**80, math.inf, ["a", "b"], {"k": [1, None]}, files.MISSING, files.SKIPPED, "", "naïve '; --",
    '{"$float": "nan"}', 2**63 - 1, True,
]  # fmt: skip


def _traits(number: int) -> dict[str, Any]:
    traits = {
        "age": number,
        'odd "name': number / 4,
        "päivä": f"{{{{ {number} }}}}",
        "tags": ["x", number],
        "f0": "own",
    }
    if number % 5 == 0:
        traits["age"] = 2**70 + number
    if number % 7 == 0:
        del traits["tags"]
    return traits


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """900 interviews with every kind of value, among agents with and without a name, two scenarios and two models."""
    path = tmp_path_factory.mktemp("mixed") / "mixed.run"
    agents = [Agent(_traits(n), name=f"p{n}" if n % 3 else None) for n in range(225)]
    models = [Model("test", canned_response="x", temperature=0.5), Model("test", canned_response="y")]
    scenarios = [Scenario(city="Oslo", big=2**90), Scenario(city="Lima")]
    of = files.job(files.survey("plain", "mixed", "sure", bools=["sure"]), agents, scenarios, models)
    return files.write(path, of, lambda n: [f"text {n}", ANSWERS[n % len(ANSWERS)], n % 2 == 0])


def _from_batches(results: Results) -> list[tuple[Any, ...]]:
    return list(chain.from_iterable(zip(*batch, strict=True) for batch in results._batches()))


@pytest.mark.parametrize(
    "verb",
    [
        lambda every: every,
        lambda every: every.select("plain"),
        lambda every: every.select("answer.*", "agent.*"),
        lambda every: every.select(
            "scenario.city", "scenario.big", "agent.agent_name", "model.temperature", "model.model"
        ),
        lambda every: every.select("interview.ordinal", "interview.status", "iteration.iteration", "agent.agent_index"),
        lambda every: every.select('agent.odd "name', "agent.f0", "agent.päivä", "agent.tags"),
        lambda every: every.select("plain", "agent.age")[100:333],
        lambda every: every.filter("agent.age < 50").select("mixed", "agent.age"),
        lambda every: every.filter("endswith(plain, '7')").select("plain", "sure"),
        lambda every: every.filter("scenario.city == 'Lima'")[10:].select("sure", "scenario.city"),
        lambda every: every.sort_by("agent.age", reverse=True).select("agent.age", "plain"),
        lambda every: every.shuffle(seed=3).head(50).select("plain", "interview.ordinal"),
        lambda every: every.mutate("twice = len(plain)").select("twice", "plain"),
        lambda every: every.select("plain", "prompt.plain_user_prompt"),
        lambda every: every.rename("plain", "said").select("said", "agent.age"),
        lambda every: (every + every).select("plain", "agent.age"),
        lambda every: (every + every).sort_by("plain").select("plain"),
        lambda every: every.filter("agent.age < 0").select("plain"),
    ],
)
def test_batches_have_the_values_of_rows(mixed: Path, verb: Callable[[Results], Results]) -> None:
    with Results.open(mixed) as results:
        view = verb(results)
        expected = list(view._values())
        found = _from_batches(view)
    assert repr(found) == repr(expected)  # NaN is not equal to itself, and True is equal to 1
    assert all(isinstance(column, tuple) for batch in view._batches() for column in batch)


def test_the_fast_way_is_taken(mixed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("read row by row")

    monkeypatch.setattr(stages, "fetch", refuse)
    with Results.open(mixed) as results:
        view = results.filter("plain != 'text'").select("answer.*", "agent.*", "scenario.city")
        assert len(_from_batches(view)) == 900


def test_a_batch_ends_at_a_number_of_rows_or_bytes(mixed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_pages, "_MOST_ROWS", 64)
    with Results.open(mixed) as results:
        monkeypatch.setattr(stages, "_BATCH_ROWS", 100)
        assert [len(batch[0]) for batch in results.select("plain")._batches()] == [100] * 9
        monkeypatch.setattr(bulk_reading, "_MOST_BYTES", 1_000)
        assert {len(batch[0]) for batch in results.select("plain")._batches()} == {64, 900 % 64}


def test_long_values_are_read_row_by_row_and_those_around_them_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = files.job(files.survey("said"), [Agent({"n": n}) for n in range(3_000)])
    long = {700: "x" * 300_000, 701: "y" * 300_000, 2_999: "z" * 2_000_000}
    path = files.write(tmp_path / "long.run", of, lambda n: [long.get(n, f"short {n}")])
    pages: list[int] = []
    fetch = stages.fetch

    def noted(*given: Any) -> Any:
        page, is_cut = fetch(*given)
        pages.append(len(page))
        return page, is_cut

    monkeypatch.setattr(stages, "fetch", noted)
    with Results.open(path) as results:
        found = _from_batches(results.select("said", "agent.n"))
    assert found == [(long.get(n, f"short {n}"), n) for n in range(3_000)]
    assert 0 < sum(pages) < 1_500


@pytest.mark.parametrize(
    ("name", "written_as"),
    [
        ("plain", "format_1"),
        ("failing", "format_1"),
        ("mapped", "format_1"),
        ("wide", "format_1"),
        ("plain", "format_2"),
    ],
)
def test_files_of_every_format_are_read(tmp_path: Path, name: str, written_as: str) -> None:
    with Results.open(unpacked(name, tmp_path, written_as)) as results:
        assert repr(_from_batches(results)) == repr(list(results._values()))


@pytest.mark.parametrize("change", CHANGED_ROWS)
def test_a_changed_row_is_refused_in_batches_as_it_is_row_by_row(tmp_path: Path, change: str) -> None:
    path = files.city(tmp_path / "city.run", 200)
    _edit(path, change)
    with Results.open(path) as results:
        for columns in (["mood"], ["mood", "agent.age", "scenario.city"]):
            assert _refusal(lambda c=columns: _from_batches(results.select(*c))) == _refusal(
                lambda c=columns: list(results.select(*c)._values())
            )


@pytest.mark.parametrize(
    "change", ["status = 7", "model = 5", "model = 0.0", "iteration = 'x'", "agent = 4.0", "scenario = NULL"]
)
def test_a_row_forged_with_a_checksum_that_fits_is_refused(tmp_path: Path, change: str) -> None:
    path = files.city(tmp_path / "city.run", 200)
    _edit(path, f"UPDATE interviews SET {change} WHERE ordinal = 9")
    with Results.open(fitted(path)) as results, pytest.raises(RunFileDamaged, match="Interview 9"):
        _from_batches(results.select("mood"))


def test_a_missing_row_is_noticed_at_the_end(tmp_path: Path) -> None:
    path = files.city(tmp_path / "city.run", 200)
    _edit(path, "DELETE FROM interviews WHERE ordinal = 100")
    with Results.open(path) as results, pytest.raises(RunFileDamaged, match="1 are missing"):
        _from_batches(results.select("mood"))


def _edit(path: Path, statement: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()


def _refusal(read: Callable[[], object]) -> str | None:
    try:
        read()
    except HeadraceError as error:
        return str(error)
    return None


def test_one_interview_is_found_without_counting_all(mixed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("counted all interviews")

    monkeypatch.setattr(stages, "check_none_is_missing", refuse)
    with Results.open(mixed) as results:
        assert results.at(777).answer["plain"] == results[777].answer["plain"] == "text 777"
        assert results[-1].ordinal == 899
        assert [result.ordinal for result in results[10:12]] == [10, 11]


def test_a_column_that_is_assumed_changes_without_being_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Iterations, agents and statuses are the same for many rows and then are not."""
    monkeypatch.setattr(column_pages, "_MOST_ROWS", 16)
    monkeypatch.setattr(stages, "_BATCH_ROWS", 40)
    of = files.job(files.survey("said"), [Agent({"n": n}) for n in range(300)])
    path = files.write(tmp_path / "twice.run", of, lambda n: [files.MISSING if n in (150, 222) else f"{n}"], n=2)
    columns = ["said", "agent.n", "agent.agent_index", "iteration.iteration", "interview.status", "interview.ordinal"]
    statements: list[str] = []
    query = column_pages.page_query
    monkeypatch.setattr(column_pages, "page_query", lambda *given: statements.append(given[1]) or query(*given))
    with Results.open(path) as results:
        for view in (results, results.sort_by("answer.said"), results.filter("agent.n != 3")):
            assert _from_batches(view.select(*columns)) == list(view.select(*columns)._values())
        whole = [result.ordinal for result in results]
    assert whole == list(range(600))
    assert any("i.model" not in selected for selected in statements), "nothing was ever assumed"


@pytest.mark.parametrize("change", ["iteration = 1", "agent = 7", "status = 1", "more = '[1]'"])
def test_an_assumed_column_that_is_damaged_is_given_as_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(column_pages, "_MOST_ROWS", 16)
    monkeypatch.setattr(stages, "_BATCH_ROWS", 40)
    of = files.job(files.survey("said"), [Agent({"n": n}) for n in range(300)])
    path = files.write(tmp_path / "changed.run", of, lambda n: [f"{n}"])
    _edit(path, f"UPDATE interviews SET {change} WHERE ordinal = 200")
    columns = ["said", "agent.agent_index", "iteration.iteration", "interview.status"]
    with Results.open(path) as results:
        assert _from_batches(results.select(*columns)) == [(f"{n}", n, 0, "done") for n in range(300)]
        with pytest.raises(RunFileDamaged, match="Interview 200"):  # what a filter has looked at is read
            _from_batches(results.filter("answer.said > ''").select(*columns))
