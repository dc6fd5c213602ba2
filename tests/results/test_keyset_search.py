"""Pages behind a place have the rows that `filter` and `sort_by` give, in that order, however often time runs out."""

from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from headrace.errors import InvalidInput, QueryTimeout
from headrace.results.reading import kept_orders, keyset_search
from headrace.results.reading.file_view import FileView, SharedFile
from headrace.results.reading.kept_orders import KeptOrder, KeptOrders
from headrace.results.reading.keyset_search import KeysetFound, KeysetPlace, find_interviews
from headrace.results.results import Results
from headrace.store.queries.query_clock import QueryClock
from headrace.survey.agent import Agent
from headrace.survey.scenario import Scenario
from tests.results import files

NUMBERS = [None, 0, 1, 5, 7.5, 2**53, -3]
TEXTS = [None, "", "5", "07", "good", "😀"]
MIXED = [2**70, float("nan"), "5", 5, [1], {"a": 1}, None, True, -(2**65), "", [0], 2**70 + 1]
AGENTS = [Agent({"age": age, "odd": odd}) for age, odd in zip([1, 2.5, 30, 5], [2**70, "x", [1], 5], strict=True)]
SORTS = ["", "number", "-number", "text", "-text", "mixed", "-mixed", "agent.age", "-agent.age", "agent.odd", "flag",
         "-interview.ordinal", "interview.ordinal", "-comment.number_comment"]  # fmt: skip
FILTERS = ["", "number > 0", "agent.age < 10 and text != ''", "len(mixed) == 1", "number == 12345"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cities = [Scenario(city=city) for city in ("Oslo", "Lima", "Rome")]
    of = files.job(
        files.survey("number", "text", "mixed", "flag", bools=["flag"]), [*AGENTS, Agent({"sole": 1})], cities
    )
    held = [n for n in range(60) if n not in (4, 5, 6, 7, 40)]
    return files.write(
        tmp_path_factory.mktemp("keyset") / "k.run",
        of,
        lambda n: [NUMBERS[n % 7], TEXTS[n % 6], MIXED[n % 12], [True, False, files.MISSING][n % 3]],
        held,
        n=4,
    )


@pytest.fixture(autouse=True)
def _small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyset_search, "_FIRST_ROWS", 7)
    monkeypatch.setattr(keyset_search, "_MOST_ROWS", 7)


@pytest.fixture
def file(path: Path) -> Iterator[SharedFile]:
    shared = SharedFile.checked(path)
    yield shared
    shared.reader.close()


def view_of(file: SharedFile, condition: str, sort: str) -> FileView:
    view = FileView(file=file)
    view = view.filtering(condition) if condition else view
    return view.ordering([sort.removeprefix("-")], sort.startswith("-")) if sort else view


@cache  # several tests ask for each
def expected(path: Path, condition: str, sort: str) -> list[int]:
    with Results.open(path) as results:
        results = results.filter(condition) if condition else results
        results = results.sort_by(sort.removeprefix("-"), reverse=sort.startswith("-")) if sort else results
        return results.select("interview.ordinal").to_list()


def unlimited() -> QueryClock:
    return QueryClock(60.0)


def soon_over() -> QueryClock:
    """A clock that lets a search read a range or two: each look at it takes a second."""
    ticks = count()
    return QueryClock(17.0, clock=lambda: float(next(ticks)))


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("condition", FILTERS)
def test_pages_forward_and_back_have_the_rows_of_the_view(path: Path, file: SharedFile, condition: str, sort: str):
    view, wanted = view_of(file, condition, sort), expected(path, condition, sort)
    forward: list[int] = []
    place: KeysetPlace | None = KeysetPlace()
    before = None
    while place is not None:
        found = find_interviews(view.opened(), place, 6, unlimited())
        forward += found.ordinals
        place, before = found.behind, found.before
    assert forward == wanted
    back = found.ordinals
    while before is not None:
        found = find_interviews(view.opened(), before, 6, unlimited())
        back = found.ordinals + back
        before = found.before
    assert back == wanted


class Reads:
    """How many ranges searches have read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ranges = 0
        read = keyset_search.range_end

        def counted(*given: Any, **named: Any) -> int | None:
            self.ranges += 1
            return read(*given, **named)

        monkeypatch.setattr(keyset_search, "range_end", counted)


@pytest.mark.parametrize("ahead", [4, 2_000])
@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("condition", ["", "len(mixed) == 1"])
def test_pages_from_a_kept_order_are_the_same_whichever_way_one_turns(
    path: Path, file: SharedFile, condition: str, sort: str, ahead: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(keyset_search, "MOST_AHEAD", ahead)
    monkeypatch.setattr(kept_orders, "MOST_AHEAD", ahead)
    view, wanted, kept = view_of(file, condition, sort), expected(path, condition, sort), KeptOrder()
    draw, place, at = Random(1), KeysetPlace(), 0
    reads = Reads(monkeypatch)
    for _ in range(40):
        most = draw.choice((1, 3, 6))
        found = find_interviews(view.opened(), place, most, unlimited(), kept=kept)
        start = max(0, at - most) if place.is_back else at
        end = at if place.is_back else min(len(wanted), at + most)
        assert found.ordinals == wanted[start:end]
        further, is_over = (found.before, start == 0) if place.is_back else (found.behind, end == len(wanted))
        assert (further is None) is is_over
        back = [found.before] * (start > 0)
        on = [found.behind] * (end < len(wanted))
        place = draw.choice([KeysetPlace(), KeysetPlace(None, True), *back * 3, *on * 3])
        assert place is not None
        at = len(wanted) if place.is_back else 0
        if place.behind is not None:
            at = wanted.index(place.behind) + (not place.is_back)
    if ahead == 2_000 and sort.strip("-") not in ("", "interview.ordinal"):
        assert reads.ranges <= 10, "once through the file, seven rows at a time, and not for each page"


def test_long_keys_are_not_kept_for_pages_that_nobody_asked_for(
    path: Path, file: SharedFile, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(keyset_search, "_MOST_LETTERS", 3)
    wanted, kept, place = expected(path, "", "-text"), KeptOrder(), KeysetPlace()
    for start in range(0, len(wanted), 6):
        found = find_interviews(view_of(file, "", "-text").opened(), place, 6, unlimited(), kept=kept)
        assert found.ordinals == wanted[start : start + 6]
        if start == 0:
            assert kept.next_of(None, 6, is_back=False) is not None
            assert kept.next_of(None, 20, is_back=False) is None
        place = found.behind or place


def test_what_is_kept_is_of_the_file_as_it_is(tmp_path: Path):
    path, orders = tmp_path / "a.run", KeptOrders()
    path.write_bytes(b"one")
    first = orders.of(path, "sort")
    assert orders.of(path, "sort") is first
    assert orders.of(path, "other") is not first
    path.with_name("a.run-wal").write_bytes(b"more")
    assert orders.of(path, "sort") is not first
    for number in range(100):
        orders.of(path, number)
    assert len(orders._orders) <= 4


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("condition", FILTERS)
def test_a_search_that_runs_out_of_time_goes_on_where_it_was(
    path: Path, file: SharedFile, condition: str, sort: str, keeps: bool
):
    view, wanted = view_of(file, condition, sort), expected(path, condition, sort)
    is_sorted = sort not in ("", "interview.ordinal", "-interview.ordinal")
    for is_back in (False, True):
        place: KeysetPlace | None = KeysetPlace(None, is_back)
        seen, interruptions, kept = [], 0, KeptOrder() if keeps else None
        while place is not None:
            found = find_interviews(view.opened(), place, 6, soon_over(), kept=kept)
            interruptions += found.read_to is not None
            if not is_sorted or found.read_to is None:
                seen = found.ordinals + seen if is_back else seen + found.ordinals
            place = found.before if is_back else found.behind
        assert seen == wanted
        assert interruptions or not (is_sorted or wanted == []), "the clock should have ended some searches"


def test_an_interrupted_search_says_how_far_it_came(file: SharedFile):
    found = find_interviews(view_of(file, "number == 12345", "").opened(), KeysetPlace(), 6, soon_over())
    assert found.ordinals == []
    assert found.read_to is not None
    assert found.behind == KeysetPlace(found.read_to)


def test_a_search_that_has_no_time_at_all_is_a_timeout(file: SharedFile):
    ticks = count(step=100)
    with pytest.raises(QueryTimeout):
        find_interviews(view_of(file, "", "").opened(), KeysetPlace(), 6, QueryClock(1.0, lambda: float(next(ticks))))


@pytest.mark.parametrize("place", [KeysetPlace(4), KeysetPlace(2**62), KeysetPlace(None, False, 3, (1, 2, 40))])
def test_a_place_that_no_row_has_is_refused_where_rows_are_sorted(file: SharedFile, place: KeysetPlace):
    with pytest.raises(InvalidInput, match="another file"):
        find_interviews(view_of(file, "", "number").opened(), place, 6, unlimited())


def test_in_the_order_of_the_plan_a_place_may_be_any_ordinal(file: SharedFile):
    view = view_of(file, "", "")
    assert find_interviews(view.opened(), KeysetPlace(5), 2, unlimited()).ordinals == [8, 9]
    assert find_interviews(view.opened(), KeysetPlace(6, True), 2, unlimited()).ordinals == [2, 3]
    assert find_interviews(view.opened(), KeysetPlace(2**62), 2, unlimited()) == KeysetFound(
        ordinals=[], before=KeysetPlace(2**62 + 1, True), behind=None
    )
