"""Filters, orders and windows of generated answers are those that pandas gives of the same rows."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.plan.portion import Portion
from headrace.results.reading import conditions
from headrace.results.results import Results, results_of_run
from headrace.survey.agent import Agent
from tests.results import files

NUMBERS = st.sampled_from([0, 1, -1, 2.5, 7, 2**53 + 1, -(2**63)])
TEXTS = st.sampled_from(["", "a", "A", "ab", "wind", "'; drop table x; --", "{{ q }}", 'q"uote', "🙂", "é", "a\0b"])
ANSWERS = st.tuples(st.none() | NUMBERS, st.none() | TEXTS, st.booleans())
Mask = Callable[[pd.DataFrame], "pd.Series[bool]"]


def _numbers(frame: pd.DataFrame) -> Any:
    return frame["answer.number"]


def _texts(frame: pd.DataFrame) -> Any:
    return frame["answer.text"]


def _each(test: Callable[[str], bool]) -> Mask:
    return lambda frame: _texts(frame).map(lambda text: isinstance(text, str) and test(text)).astype(bool)


CONDITIONS: dict[str, Mask] = {
    "answer.number > 1": lambda frame: _numbers(frame).map(lambda n: n is not None and n > 1).astype(bool),
    "answer.number in [1, 2.5, 9007199254740993]": lambda frame: _numbers(frame).isin([1, 2.5, 2**53 + 1]),
    "number is None": lambda frame: _numbers(frame).isna(),
    "failed": lambda frame: frame["interview.status"] == "failed",
    "'a' in answer.text": _each(lambda text: "a" in text),
    "answer.text.startswith('a')": _each(lambda text: text.startswith("a")),
    "answer.text.endswith('b')": _each(lambda text: text.endswith("b")),
    "text.lower() == 'a'": _each(lambda text: text.lower() == "a"),
    "len(answer.text) == 1": _each(lambda text: len(text) == 1),
    "answer.text[0] == 'a'": _each(lambda text: text[:1] == "a"),
    "agent.n % 2 == 1": lambda frame: frame["agent.n"] % 2 == 1,
    "text == '\\'; drop table x; --'": _each(lambda text: text == "'; drop table x; --"),
}


@st.composite
def wholes(draw: st.DrawFn) -> tuple[str, Mask]:
    """A condition with what it means in pandas."""
    one, other = draw(st.sampled_from(list(CONDITIONS))), draw(st.sampled_from(list(CONDITIONS)))
    left, right = CONDITIONS[one], CONDITIONS[other]
    match draw(st.sampled_from(["and", "or", "not"])):
        case "and":
            return f"{one} and ({other})", lambda frame: left(frame) & right(frame)
        case "or":
            return f"({one}) or {other}", lambda frame: left(frame) | right(frame)
        case _:
            return f"not ({one})", lambda frame: ~left(frame)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    answers=st.lists(ANSWERS, min_size=1, max_size=12),
    whole=wholes(),
    directions=st.tuples(st.booleans(), st.booleans()),
    window=st.tuples(st.integers(-4, 12), st.integers(-4, 12)),
    limit=st.none() | st.integers(1, 12),
    is_in_python=st.booleans(),
)
def test_views_are_what_pandas_makes_of_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory,
    answers: list[tuple[Any, Any, bool]],
    whole: tuple[str, Mask],
    directions: tuple[bool, bool],
    window: tuple[int, int],
    limit: int | None,
    is_in_python: bool,
) -> None:
    path = tmp_path_factory.mktemp("pandas") / "a.run"
    of = files.job(files.survey("number", "text", "may_fail"), [Agent({"n": n}) for n in range(len(answers))])
    files.write(path, of, lambda n: [*answers[n][:2], files.MISSING if answers[n][2] else "x"])
    scope = Portion(len(answers), limit=limit, sample=None, seed=0).scope
    source, mask = whole
    with pytest.MonkeyPatch.context() as patch, results_of_run(path, scope) as results:
        if is_in_python:
            patch.setattr(conditions, "compile_sql", lambda *_: None)
        rows = results.to_dicts(remove_prefix=False)
        frame = pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=object) for name in rows[0]})
        chosen = frame[mask(frame)]
        found = results.filter(source)
        assert _ordinals(found) == list(chosen["interview.ordinal"])
        assert len(found) == len(chosen)
        keys = chosen.assign(first=chosen["answer.text"].isna(), text=chosen["answer.text"].fillna(""))
        in_order = keys.iloc[sorted(range(len(keys)), key=lambda at: keys["agent.n"].iloc[at], reverse=directions[1])]
        places = [
            (0, b"") if none else (1, text.encode())
            for none, text in zip(in_order["first"], in_order["text"], strict=True)
        ]
        order = sorted(range(len(places)), key=places.__getitem__, reverse=directions[0])
        expected = list(in_order["interview.ordinal"].iloc[order])
        ordered = found.sort_by("text", "agent.n", reverse=list(directions))
        assert _ordinals(ordered) == expected
        assert _ordinals(ordered[window[0] : window[1]]) == expected[window[0] : window[1]]
        assert _ordinals(ordered.tail(2)) == expected[-2:]


def _ordinals(results: Results) -> list[int]:
    return [result.ordinal for result in results]
