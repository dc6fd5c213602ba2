"""Verbs on results of generated surveys give what pandas gives of the same rows: any questions, traits and models,
several answers from everyone, failures, and interviews that are not there yet.
"""

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.results.results import Results
from headrace.survey.agent import Agent
from headrace.survey.model import Model
from headrace.survey.scenario import Scenario
from headrace.survey.values import encode_value
from tests.results import files

NUMBERS = st.sampled_from([0, 1, 2, -3, 7, 2.5, 2**53 + 1, 2**70, float("nan")])
TEXTS = st.sampled_from(["", "a", "B", "'; drop table x; --", "{{ q }}", "é", "a\0b", "5"])
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "number": NUMBERS,
    "text": TEXTS,
    "whole": st.integers(-2, 2),
    "tags": st.lists(TEXTS | st.integers(0, 2), max_size=2),
    "mixed": NUMBERS | TEXTS,
}
TRAITS = st.dictionaries(st.sampled_from(["age", "city", "odd name"]), st.integers(0, 2) | TEXTS, max_size=3)


@dataclass(frozen=True)
class Generated:
    questions: list[str]
    agents: list[dict[str, Any]]
    cities: list[str]
    models: int
    n: int
    answers: list[list[Any]]
    stored: list[int]

    def write(self, path: Path) -> Path:
        of = files.job(
            files.survey(*self.questions),
            [Agent(traits) for traits in self.agents],
            [Scenario(city=city) for city in self.cities],
            [Model("test", temperature=number / 4, canned_response="x") for number in range(self.models)],
        )
        return files.write(path, of, self.answers.__getitem__, self.stored, n=self.n)


@st.composite
def surveys(draw: st.DrawFn) -> Generated:
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
    agents = draw(st.lists(TRAITS, min_size=1, max_size=4))
    cities, models, n = (draw(st.integers(1, 2)) for _ in range(3))
    size = len(agents) * cities * models * n
    rows = st.tuples(*[st.just(files.MISSING) | st.none() | KINDS[kind] for kind in kinds]).map(list)
    return Generated(
        questions=[f"q{place}_{kind}" for place, kind in enumerate(kinds)],
        agents=agents,
        cities=["Oslo", "Lima"][:cities],
        models=models,
        n=n,
        answers=draw(st.lists(rows, min_size=size, max_size=size)),
        stored=draw(
            st.just(list(range(size))) | st.lists(st.integers(0, size - 1), unique=True, min_size=1).map(sorted)
        ),
    )


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    generated=surveys(),
    start=st.integers(-5, 9),
    stop=st.integers(-5, 9),
    is_down=st.booleans(),
    seed=st.integers(0, 3),
)
def test_verbs_on_generated_surveys_are_those_of_pandas(
    tmp_path_factory: pytest.TempPathFactory, generated: Generated, start: int, stop: int, is_down: bool, seed: int
) -> None:
    path = generated.write(tmp_path_factory.mktemp("generated") / "g.run")
    with Results.open(path) as results:
        frame = frame_of(results)
        assert list(frame["interview.ordinal"]) == generated.stored
        for question in generated.questions:
            check_column(results, frame, f"answer.{question}", is_down=is_down)
        for name in ("scenario.city", "model.temperature", "agent.age", "iteration.iteration"):
            if name in frame:
                check_column(results, frame, name, is_down=is_down)
        check_windows(results, frame, start, stop, seed)
        check_columns(results, frame)


def frame_of(results: Results) -> pd.DataFrame:
    rows = results.select("*").to_dicts(remove_prefix=False)
    return pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=object) for name in rows[0]})


def check_column(results: Results, frame: pd.DataFrame, name: str, *, is_down: bool) -> None:
    values = frame[name]
    missing = results.filter(f"{name} is None")
    assert ordinals(missing) == list(frame[[value is None for value in values]]["interview.ordinal"])
    larger = results.filter(f"{name} >= 1 and not failed")
    is_larger = [type(value) in (int, float, bool) and value >= 1 for value in values]
    assert ordinals(larger) == list(
        frame[pd.Series(is_larger, dtype=bool) & (frame["interview.status"] == "done")]["interview.ordinal"]
    )
    keys = [sort_key(value) for value in values]
    order = sorted(range(len(keys)), key=keys.__getitem__, reverse=is_down)
    assert ordinals(results.sort_by(name, reverse=is_down)) == list(frame["interview.ordinal"].iloc[order])
    counts = Counter(map(same, values))
    tallied = results.tally(name).to_dicts(remove_prefix=False)
    assert {same(row[name]): row["count"] for row in tallied} == counts
    assert [row["count"] for row in tallied] == sorted(counts.values(), reverse=True)
    distinct = [same(value) for value in results.distinct(name).to_list()]
    assert distinct == list(dict.fromkeys(map(same, values)))
    grouped = results.group_by(name).agg(n="count()", held=f"count({name})", last="max(interview.ordinal)")
    by_key = frame.assign(key=[repr(same(value)) for value in values]).groupby("key", sort=False)
    lasts, sizes = by_key["interview.ordinal"].max().to_dict(), by_key.size().to_dict()
    rows = grouped.to_dicts(remove_prefix=False)
    assert {repr(same(row[name])): (row["n"], row["last"]) for row in rows} == {
        key: (size, lasts[key]) for key, size in sizes.items()
    }
    assert [row["held"] for row in rows] == [0 if is_missing(row[name]) else row["n"] for row in rows]


def check_windows(results: Results, frame: pd.DataFrame, start: int, stop: int, seed: int) -> None:
    everything = list(frame["interview.ordinal"])
    assert len(results) == len(frame)
    assert ordinals(results[start:stop]) == everything[start:stop]
    assert ordinals(results.head(3)) == list(frame.head(3)["interview.ordinal"])
    assert ordinals(results.tail(2)) == list(frame.tail(2)["interview.ordinal"])
    if -len(everything) <= start < len(everything):
        assert results[start].ordinal == everything[start]
    drawn = ordinals(results.sample(4, seed=seed))
    assert drawn == ordinals(results.sample(4, seed=seed))
    assert len({*drawn}) == len(drawn) == min(4, len(everything))
    assert {*drawn} <= {*everything}
    assert sorted(ordinals(results.shuffle(seed))) == everything


def check_columns(results: Results, frame: pd.DataFrame) -> None:
    renamed = results.mutate("twice = interview.ordinal * 2").rename("scenario.city", "place")
    found = renamed.select("answer.twice", "place", "interview.ordinal")
    assert found.to_list() == [
        (2 * number, city, number)
        for number, city in zip(frame["interview.ordinal"], frame["scenario.city"], strict=True)
    ]
    assert ordinals(renamed.sort_by("twice", reverse=True)) == list(frame["interview.ordinal"][::-1])
    assert "scenario.city" not in results.drop("scenario.city").columns


def ordinals(results: Results) -> list[int]:
    return [result.ordinal for result in results]


def is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def same(value: Any) -> Any:
    """A key that is equal where two values are the same in a tally."""
    return (
        "NaN" if isinstance(value, float) and math.isnan(value) else repr(value) if isinstance(value, list) else value
    )


def sort_key(value: Any) -> tuple[int, Any]:
    """None and NaN, numbers, texts, then lists by their JSON."""
    if is_missing(value):
        return 0, 0
    if isinstance(value, (int, float)):
        return 1, float(value) if abs(value) >= 2**63 else value
    return (2, value.encode()) if isinstance(value, str) else (3, encode_value(value))
