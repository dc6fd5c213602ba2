"""Counts that are kept and brought up to date: always those of the file as it is."""

import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import (
    Agent,
    Model,
    QuestionCheckBox,
    QuestionFreeText,
    QuestionList,
    QuestionMultipleChoice,
    QuestionNumerical,
    QuestionYesNo,
    Results,
    ScenarioList,
    Survey,
)
from headrace.charts.chart_data import BarChart
from headrace.expressions import ColumnKind, compile_closure, parse, truth
from headrace.results.columns.result_column import Group, ResultColumn
from headrace.results.plots import kept_counts
from headrace.results.plots.counted_columns import CountedAs, CountedColumn
from headrace.results.plots.kept_charts import KeptChart, kept_chart
from headrace.results.plots.kept_column import KeptColumn
from headrace.results.plots.kept_counts import AskedPicture, CountedPicture, KeptCounts
from headrace.results.plots.range_counting import ROWS
from headrace.store.run_file.range_digests import RangeMark

QUESTIONS = ("mood", "rating", "price", "why", "colors", "words", "again")


def survey() -> Survey:
    return Survey(
        [
            QuestionMultipleChoice(
                question_name="mood", question_text="{{ agent.n }} mood?", question_options=["good", "bad", 'so "so"']
            ),
            QuestionNumerical(question_name="rating", question_text="{{ agent.n }} rating?"),
            QuestionNumerical(question_name="price", question_text="{{ agent.n }} price?"),
            QuestionFreeText(question_name="why", question_text="{{ agent.n }} why?"),
            QuestionCheckBox(
                question_name="colors", question_text="{{ agent.n }} colors?", question_options=["red", "green", "blue"]
            ),
            QuestionList(question_name="words", question_text="{{ agent.n }} words?"),
            QuestionYesNo(question_name="again", question_text="{{ agent.n }} again?"),
        ]
    )


class Answers:
    """Answers that differ; some moods are none of the options while `fails`."""

    def __init__(self, *, fails: bool = True) -> None:
        self.fails = fails

    def __call__(self, user_prompt: str, system_prompt: str, files: list[object]) -> str:
        number, what = user_prompt.split("?")[0].split(" ")
        chance = random.Random(f"{number} {what}")
        match what:
            case "mood":
                mood = chance.choice(["good", "bad", 'so "so"', "none of them"])
                return mood if self.fails or mood != "none of them" else "good"
            case "rating":
                return str(chance.randint(-3, 7))
            case "price":
                return f"{chance.uniform(0, 3):.2f}"
            case "why":
                return f"because of {chance.random()} " * chance.randint(1, 9)
            case "colors":
                return '["red"]' if chance.random() < 0.5 else '["green", "blue"]'
            case "words":
                return f'["w{chance.randint(0, 30)}", "of"]'
            case _:
                return chance.choice(["Yes", "No"])


def run(path: Path, interviews: int = 240, *, fails: bool = True, **options: Any) -> None:
    agents = [
        Agent(
            traits={
                "n": n,
                "city": ("Rome", "Oslo", "Lima")[n % 3],
                "age": n % 70,
                "seed": random.Random(n).randint(-(2**63), -1),
            }
        )
        for n in range(interviews)
    ]
    answers = Answers(fails=fails)
    survey().by(agents).by(ScenarioList.from_list("x", [1])).by(Model("test", func=answers)).run(
        path, cache=False, **options
    )


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_counts, "_SMALLEST_RANGE", 16)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "a.run"
    run(path)
    return path


def clock_of_looks() -> Any:
    """A clock that is a second later with each look at it: no look is left out."""
    now = iter(range(10**9))
    return lambda: float(next(now))


def look(kept: KeptCounts, path: Path, by: str | None = None, condition: str = "") -> dict[str, CountedPicture]:
    asked = [AskedPicture(f"answer.{name}", by, condition) for name in QUESTIONS]
    return dict(zip(QUESTIONS, kept.look(path, asked, 10.0**6), strict=True))


def bars(chart: KeptChart) -> list[dict[str, int]]:
    return [
        {bar.text: count for bar, count in zip(chart.chart.bars, panel.counts, strict=True) if count}
        for panel in chart.chart.panels
    ]


def charts(path: Path, by: str | None = None, condition: str = "") -> dict[str, KeptChart]:
    found = look(KeptCounts(clock_of_looks()), path, by, condition)
    assert all(each.is_complete for each in found.values())
    return {name: kept_chart(each.kept, name, by, condition) for name, each in found.items()}


@pytest.mark.parametrize(
    ("by", "condition"), [(None, ""), ("agent.city", ""), ("agent.age", "agent.age < 40"), ("agent.seed", "")]
)
def test_every_bar_has_as_many_interviews_as_its_filter_finds(path: Path, by: str | None, condition: str):
    with Results.open(path) as results:
        for name, drawn in charts(path, by, condition).items():
            checked = 0
            for panel, filters in zip(drawn.chart.panels, drawn.filters, strict=True):
                for bar, count, chosen in zip(drawn.chart.bars, panel.counts, filters, strict=True):
                    if chosen:
                        assert len(results.filter(chosen)) == count, (name, bar.text, chosen)
                        checked += 1
            assert checked >= 2, name


def test_the_counts_are_those_of_plots_of_results(path: Path):
    with Results.open(path) as results:
        for by in (None, "agent.city"):
            for name in ("mood", "rating", "colors", "again"):
                drawn = charts(path, by)[name]
                plotted = results.plot(f"answer.{name}", by=by).chart
                assert isinstance(plotted, BarChart)
                panels = {panel.label: panel for panel in plotted.panels}
                for ours, counts in zip(drawn.chart.panels, bars(drawn), strict=True):
                    theirs = panels[ours.label]
                    found = {bar.text: count for bar, count in zip(plotted.bars, theirs.counts, strict=True) if count}
                    assert counts == found
                    assert ours.rows == theirs.rows


def test_a_condition_that_only_python_can_tell_counts_the_same(path: Path):
    in_sql, in_python = (
        charts(path, "agent.city", "agent.age < 40"),
        charts(path, "agent.city", "agent.age < 40 and strip(why) != None"),
    )
    for name in QUESTIONS:
        assert bars(in_sql[name]) == bars(in_python[name]), name


def test_a_short_look_reads_the_first_ranges_and_the_next_one_goes_on(path: Path):
    kept = KeptCounts(clock_of_looks())
    asked = [AskedPicture("answer.mood", None, "")]
    reads: list[int] = []
    for _ in range(240):
        (found,) = kept.look(path, asked, 3.0)  # three looks at the clock
        reads.append(found.read)
        if found.is_complete:
            break
        assert found.total == 240
        assert sum(count for (bar, _), count in found.kept.counts().items() if bar == ROWS) == found.read
    assert reads[0] < 240
    assert reads == sorted(set(reads))
    assert reads[-1] == 240
    assert found.is_complete


def test_ranges_that_are_final_are_read_once_and_others_follow_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "a.run"
    counted, marked = Counter[int](), Counter[int]()
    count_range, range_mark = kept_counts.count_range, kept_counts.range_mark

    def counting(part: Any, column: Any, split: Any, first: int, stop: int) -> Any:
        counted[first // 16] += 1
        return count_range(part, column, split, first, stop)

    def marking(connection: Any, header: Any, first: int, stop: int) -> Any:
        marked[first // 16] += 1
        return range_mark(connection, header, first, stop)

    monkeypatch.setattr(kept_counts, "count_range", counting)
    monkeypatch.setattr(kept_counts, "range_mark", marking)
    kept = KeptCounts(clock_of_looks())
    asked = [AskedPicture("answer.rating", None, "")]
    run(path, fails=False, limit=40)
    for _ in range(3):
        assert kept.look(path, asked, 10.0**6)[0].is_complete
    assert counted == {0: 1, 1: 1, 2: 1}  # nothing has changed since the first look
    assert marked == {0: 1, 1: 1, 2: 1}
    run(path, fails=False)
    (found,) = kept.look(path, asked, 10.0**6)
    assert found.is_complete
    assert (found.read, found.total) == (240, 240)
    assert counted == {0: 1, 1: 1, **dict.fromkeys(range(3, 15), 1), 2: 2}
    assert bars(kept_chart(found.kept, "rating", None, "")) == bars(charts(path)["rating"])


def test_interviews_that_are_asked_again_are_counted_as_they_are_now(tmp_path: Path):
    path = tmp_path / "a.run"
    kept = KeptCounts(clock_of_looks())
    run(path)
    before = {name: kept_chart(each.kept, name, None, "") for name, each in look(kept, path).items()}
    assert bars(before["mood"])[0]["failed"]
    run(path, fails=False, retry_failed=True)
    after = {name: kept_chart(each.kept, name, None, "") for name, each in look(kept, path).items()}
    assert "failed" not in bars(after["mood"])[0]
    assert sum(bars(after["mood"])[0].values()) == 240
    anew = charts(path)
    for name in QUESTIONS:
        assert bars(after[name]) == bars(anew[name]), name


def test_looks_beside_a_run_whose_interviews_end_in_any_order_end_with_what_the_file_has(tmp_path: Path):
    path = tmp_path / "a.run"
    kept = KeptCounts(clock_of_looks())
    run(path, limit=1)
    running = threading.Thread(target=run, args=(path,), kwargs={"concurrency": 7})
    running.start()
    looks = 0
    while running.is_alive() and looks < 10_000:
        found = look(kept, path, "agent.city")
        for each in found.values():
            rows = sum(count for (bar, _), count in each.kept.counts().items() if bar == ROWS)
            assert rows <= 240
        looks += 1
    running.join()
    assert looks
    at_last = look(kept, path, "agent.city")
    anew = charts(path, "agent.city")
    for name in QUESTIONS:
        assert at_last[name].is_complete
        assert bars(kept_chart(at_last[name].kept, name, "agent.city", "")) == bars(anew[name]), name


def test_another_file_at_the_same_path_is_counted_by_itself(tmp_path: Path):
    path = tmp_path / "a.run"
    kept = KeptCounts(clock_of_looks())
    run(path, 40)
    assert look(kept, path)["mood"].total == 40
    run(path, 60, fresh=True)
    found = look(kept, path)["mood"]
    assert (found.read, found.total, found.is_complete) == (60, 60, True)


def number_column(kinds: frozenset[ColumnKind]) -> KeptColumn:
    column = ResultColumn(Group.ANSWER, "x", 0)
    return KeptColumn(CountedColumn(column=column, counted_as=CountedAs.NUMBERS, kinds=kinds), None)


@given(
    st.lists(
        st.lists(st.integers(-(10**6), 10**6) | st.integers(0, 5), min_size=1, max_size=60), min_size=1, max_size=60
    )
)
def test_numbers_of_any_range_are_counted_whole_in_bounded_memory(ranges: list[list[int]]):
    from headrace.results.plots import kept_column

    before, kept_column.MOST_KEYS = kept_column.MOST_KEYS, 40
    try:
        kept = number_column(frozenset({ColumnKind.INT}))
        for at, numbers in enumerate([*ranges, ranges[0]]):
            counts = Counter((kept.counted.interval_of(number), 0) for number in numbers)
            counts[ROWS, 0] = len(numbers)
            kept.put(at % len(ranges), RangeMark(len(numbers), 0, at), counts)  # the first one is counted twice
        assert len(kept.counts()) <= 40
        every = [number for numbers in ranges for number in numbers]
        drawn = kept_chart(kept, "x", None, "")
        assert sum(drawn.chart.panels[0].counts) == len(every) == drawn.chart.panels[0].rows == kept.rows
        assert len(drawn.chart.bars) <= 26
        for bar, count, chosen in zip(drawn.chart.bars, drawn.chart.panels[0].counts, drawn.filters[0], strict=True):
            chooses = truth(compile_closure(parse(chosen), lambda _: lambda number: number))
            assert sum(map(chooses, every)) == count, bar
    finally:
        kept_column.MOST_KEYS = before
