"""Every picture counts what is in the rows: compared with counting the same rows in Python, by SQL and without it."""

import math
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import Agent, Model, QuestionCheckBox, QuestionLinearScale, QuestionMultipleChoice, Results, Survey
from headrace.charts.chart_data import BarChart, BarKind, Histogram, MemoryChart
from headrace.charts.svg_parts import fitted
from headrace.errors import InvalidInput, OptionError
from headrace.memory.bounded_history import HistoryPoint
from headrace.memory.governor import Pressure
from headrace.results.plots import counting
from headrace.results.plots.distributions import memory_chart
from tests.results.files import MISSING, SKIPPED, city, city_answers, job, survey, write
from tests.store.kept_files import unpacked

TEXTS = ["", "x", "<script>", "'; DROP TABLE interviews; --", "{{ agent.age }}", "é中\u202e", "a" * 300, "None", "1"]
NUMBERS = [0, 1, -7, 2**63 - 1, -(2**63), 2**70, 0.5, -0.1, 1e308, -1e308, 5e-324]
ODD = [math.nan, math.inf, -math.inf]
VALUES = {
    "texts": st.sampled_from(TEXTS),
    "whole": st.integers(-30, 200),
    "numbers": st.sampled_from(NUMBERS) | st.floats(-1e6, 1e6),
    "odd": st.sampled_from(NUMBERS + ODD),
    "lists": st.lists(st.sampled_from(["tea", "coffee", 3, True]), max_size=3, unique_by=str),
    "mixed": st.sampled_from([*TEXTS, 1, 1.5, True, [1], {"a": None}]),
}


def counts_of(chart: BarChart) -> Counter[tuple[str, str]]:
    """Counts by the label of the panel and of the bar; 1 and "1" have one label."""
    found = Counter[tuple[str, str]]()
    for panel in chart.panels:
        for bar, count in zip(chart.bars, panel.counts, strict=True):
            found[(panel.label, f"{bar.kind.value}: {bar.text}")] += count
    return found


def totals(chart: BarChart) -> dict[BarKind, int]:
    found = Counter[BarKind]()
    for panel in chart.panels:
        for bar, count in zip(chart.bars, panel.counts, strict=True):
            found[bar.kind] += count
    return found


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Results]:
    with Results.open(city(tmp_path / "city.run", people=100)) as opened:
        yield opened


def test_choices_are_bars_with_the_most_frequent_first_and_failures_as_such(results: Results):
    chart = results.plot("answer.mood").chart
    expected = Counter("failed" if n % 7 == 3 else city_answers(n)[0] for n in range(200))
    assert counts_of(chart) == {
        ("all", "value: Bad"): expected["Bad"],
        ("all", "value: Good"): expected["Good"],
        ("all", "failed: failed"): expected["failed"],
    }


def test_a_split_has_a_panel_for_each_value(results: Results):
    chart = results.plot("answer.mood", by="scenario.city").chart
    assert chart.title == "answer.mood by scenario.city"
    assert [(panel.label, panel.rows) for panel in chart.panels] == [("Oslo", 100), ("Lima", 100)]
    assert totals(chart)[BarKind.FAILED] == sum(n % 7 == 3 for n in range(200))


def test_numbers_are_a_histogram_and_views_are_respected(results: Results):
    chart = results.plot("rating").chart
    assert isinstance(chart, Histogram)
    assert counts_of(chart) == {("all", f"value: {rating}"): 20 for rating in range(10)}
    few = results.filter("answer.rating > 5").sort_by("agent.age")[3:20]
    assert counts_of(few.plot("answer.rating").chart) == {
        ("all", f"value: {rating}"): count
        for rating, count in sorted(Counter(result.answer["rating"] for result in few).items())
    }


def test_fractions_between_whole_numbers_stand_in_intervals_with_two_edges(tmp_path: Path):
    of = job(survey("rating"), [Agent(name=str(number)) for number in range(201)])
    with Results.open(write(tmp_path / "a.run", of, lambda n: [n / 20 if n % 20 else n // 20])) as results:
        chart = results.plot("rating").chart
    assert [bar.text for bar in chart.bars][:2] == ["0 – 0.5", "0.5 – 1"]
    assert chart.bars[-1].text == "9.5 – 10"  # and no bar for 10 alone
    assert chart.panels[0].counts == (*[10] * 19, 11)


def test_items_that_are_none_and_not_a_number_are_told_once(tmp_path: Path):
    answers = [[None, "tea"], [math.nan], ["tea"], SKIPPED]
    of = job(survey("x"), [Agent(name=str(number)) for number in range(4)])
    with Results.open(write(tmp_path / "a.run", of, lambda n: [answers[n]])) as results:
        assert counts_of(results.plot("x").chart) == {
            ("all", "value: tea"): 2,
            ("all", "value: NaN"): 1,
            ("all", "none: none"): 2,
        }


def test_many_groups_are_the_largest_and_the_others(results: Results):
    ages = Counter(20 + n % 50 for n in range(100))
    named = results.plot("answer.rating", by="agent.agent_name").chart
    assert [panel.label for panel in named.panels][-1] == "other (95 values)"
    assert sum(panel.rows for panel in named.panels) == 200
    chart = results.plot("answer.mood", by="agent.age").chart
    assert [panel.label for panel in chart.panels] == ["20 – 29", "30 – 39", "40 – 49", "50 – 59", "60 – 69"]
    assert [panel.rows for panel in chart.panels] == [
        2 * sum(count for age, count in ages.items() if low <= age < low + 10) for low in range(20, 70, 10)
    ]


def test_options_keep_their_order_and_those_nobody_chose_are_there(tmp_path: Path):
    asked = Survey(
        [
            QuestionMultipleChoice(question_name="mood", question_text="?", question_options=["Bad", "Fine", "Good"]),
            QuestionCheckBox(question_name="drinks", question_text="?", question_options=["tea", "milk"]),
            QuestionLinearScale(question_name="scale", question_text="?", question_options=[1, 2, 3]),
        ]
    )
    answers = [["Good", ["tea", "milk"], 3], ["Good", [], 3], ["Bad", ["milk"], 1], [MISSING, ["milk"], SKIPPED]]
    of = job(asked, [Agent(name=str(number)) for number in range(4)])
    with Results.open(write(tmp_path / "a.run", of, lambda n: answers[n])) as results:
        mood, drinks, scale = (results.plot(name).chart for name in ("mood", "drinks", "scale"))
        assert [(bar.text, count) for bar, count in zip(mood.bars, mood.panels[0].counts, strict=True)] == [
            ("Bad", 1),
            ("Fine", 0),
            ("Good", 2),
            ("failed", 1),
        ]
        assert counts_of(drinks) == {
            ("all", "value: tea"): 1,
            ("all", "value: milk"): 3,
            ("all", "value: (nothing)"): 1,
        }
        assert drinks.panels[0].rows == 4
        assert [fitted(note, 448) for note in drinks.notes] == list(drinks.notes)  # in half a window
        assert [bar.text for bar in scale.bars] == ["1", "2", "3", "none"]


def test_many_texts_are_lengths_with_samples(tmp_path: Path):
    of = job(survey("story"), [Agent(name=str(number)) for number in range(300)])
    path = write(tmp_path / "a.run", of, lambda n: [f"{n} <b>" + "x" * n if n else "\0nul"])
    with Results.open(path) as results:
        chart = results.plot("story").chart
        assert isinstance(chart, Histogram)
        assert (chart.axis, len(chart.samples)) == ("characters", 5)
        assert sum(chart.panels[0].counts) == 300
        assert chart.bins.low == 0  # SQLite's length, and ours, end at a NUL
        assert "<b>" not in results.plot("story").svg()


@given(data=st.data())
@settings(deadline=None, max_examples=25, derandomize=True)
def test_sql_and_python_count_alike_and_every_row_is_counted_once(data: st.DataObject, tmp_path_factory: Any):
    kind, other = data.draw(st.sampled_from(sorted(VALUES))), data.draw(st.sampled_from(sorted(VALUES)))
    value = st.one_of(VALUES[kind], st.sampled_from([MISSING, SKIPPED]))
    rows = data.draw(st.lists(st.tuples(value, VALUES[other]), max_size=25))
    agents = [Agent(name=f"a{number}", traits={"n": number % 3, "f": number / 7}) for number in range(len(rows) or 1)]
    path = tmp_path_factory.mktemp("plots") / "a.run"
    write(path, job(survey("x", "y"), agents), lambda n: list(rows[n]), range(len(rows)))
    with Results.open(path) as results, pytest.MonkeyPatch.context() as patch:
        for name, by in [("x", None), ("x", "y"), ("y", "agent.n"), ("agent.f", "x"), ("agent.n", None)]:
            patch.undo()
            chart = results.plot(name, by=by).chart
            by_sql = counts_of(chart)
            patch.setattr(counting, "_count_in_sql", lambda *_: False)
            assert counts_of(results.plot(name, by=by).chart) == by_sql
            if {"x": kind, "y": other}.get(name) not in ("lists", "mixed"):
                assert sum(by_sql.values()) == len(rows)
                assert all(sum(panel.counts) == panel.rows for panel in chart.panels)
            assert sum(panel.rows for panel in chart.panels) == len(rows)
            if name == "x":
                assert totals(chart)[BarKind.FAILED] == sum(given is MISSING for given, _ in rows)
                assert totals(chart)[BarKind.MISSING] == sum(given is SKIPPED for given, _ in rows)
            ET.fromstring(results.plot(name, by=by).svg())


@pytest.mark.parametrize("numbers", [(-(2**63), 0), (-(2**63), 2**63 - 1), (2**63 - 1, 0)])
def test_the_largest_whole_numbers_have_their_places(numbers: tuple[int, int], tmp_path: Path):
    write(
        tmp_path / "a.run", job(survey("x"), [Agent(name=str(n)) for n in range(2)]), lambda n: [numbers[n]], range(2)
    )
    with Results.open(tmp_path / "a.run") as results:
        (panel,) = results.plot("x").chart.panels
        assert sorted(filter(None, panel.counts)) == [1, 1]


def test_two_files_are_one_picture(results: Results):
    both = results + results
    assert sum(both.plot("answer.rating").chart.panels[0].counts) == 400
    with pytest.raises(InvalidInput, match="one run file"):
        both.plot_memory()


def test_nothing_to_draw_is_said(results: Results):
    none = results.filter("agent.age > 1000")
    assert none.plot("answer.mood").text(60, unicode=True) == "answer.mood\nno interviews"
    assert none.plot("answer.rating", by="scenario.city").chart.panels == ()
    ET.fromstring(none.plot("answer.rating", by="scenario.city").svg())


def test_a_column_that_is_not_there_is_named_with_its_nearest(results: Results):
    with pytest.raises(InvalidInput, match=r"no column 'answer\.moot'") as refused:
        results.plot("answer.moot")
    assert "answer.mood" in refused.value.fix
    with pytest.raises(InvalidInput, match="no column"):
        results.plot("answer.mood", by="agent.town")


def test_columns_that_were_made_are_drawn_too(results: Results):
    made = results.mutate("old = agent.age > 40").rename("answer.mood", "feeling")
    assert totals(made.plot("old").chart)[BarKind.VALUE] == 200
    assert made.plot("feeling").chart.title == "feeling"


def test_a_plot_shows_itself_and_is_saved_whole(
    results: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    plot = results.plot("answer.mood", by="scenario.city")
    assert plot.save(tmp_path / "mood.svg").read_text("utf-8") == plot.svg() == plot._repr_svg_()
    with pytest.raises(OptionError, match="no name for an SVG"):
        plot.save(tmp_path / "mood.png")
    with pytest.raises(OptionError, match="cannot be written"):
        plot.save(tmp_path / "nowhere" / "mood.svg")
    assert [path.name for path in tmp_path.iterdir() if "part" in path.name] == []
    assert repr(plot) == "Plot('answer.mood by scenario.city': 3 bars)"
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("COLUMNS", "44")
    assert max(map(len, str(plot).split("\n"))) <= 44
    assert plot.text(44, unicode=False).isascii()


def test_a_file_that_keeps_no_rows_says_so_in_place_of_a_picture(tmp_path: Path):
    asked = survey("mood", "rating").by(Agent(traits={"age": 40}), Model("test", canned_response="Good"))
    with asked.run(tmp_path / "a.run", keep="nothing", aggregate={"n": "count()"}) as results:
        views = (
            results,
            results.filter("age > 3"),
            results.head(1),
            results.mutate("old = age > 30"),
            results + results,
        )
        for view, by in product(views, (None, "agent.age")):
            with pytest.raises(InvalidInput, match="keeps no results") as refused:
                view.plot("mood", by=by)
            assert "results.aggregate() has its totals" in refused.value.fix
        assert "1 interview" in results.plot_memory().text(120)
        assert repr(results.filter("age > 3")).endswith("part of the 1 interview of a run; no rows are kept)")


def test_a_memory_picture_has_all_interviews_of_its_file_not_those_of_the_last_reading():
    point = HistoryPoint(0, 1, 1, 1e9, 50_000_000, 100_000_000, Pressure.NORMAL, done=2_880, stored_bytes=1_000)
    assert memory_chart([point], "a.run", 3_000).notes[0].endswith(" 3,000 interviews")


def test_the_memory_of_a_run_is_drawn_from_its_history(tmp_path: Path):
    asked = Survey([QuestionMultipleChoice(question_name="mood", question_text="?", question_options=["Good", "Bad"])])
    with asked.by(Model("test", canned_response="Good")).run(tmp_path / "a.run", memory="+100MB") as results:
        chart = results.plot_memory().chart
        assert isinstance(chart, MemoryChart)
        assert chart == results.plot("memory").chart
        assert "1 run," in chart.notes[0]
        assert 0 < chart.marks[0].memory_bytes < chart.budget_bytes
    older = Results.open(unpacked("plain", tmp_path, "format_2"))
    with older, pytest.raises(InvalidInput, match="no memory history"):
        older.plot_memory()
