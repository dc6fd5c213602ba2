"""Randomized options: the order an interview sees, and that it never changes."""

import re
from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from headrace import Agent, Job, Model, QuestionFreeText, QuestionMultipleChoice, Survey
from headrace.errors import SurveyError
from headrace.survey.asked_question import asked_questions
from headrace.survey.wording.option_order import shuffled

OPTIONS = ["a", "b", "c", "d"]


def pick(options: Any = OPTIONS) -> QuestionMultipleChoice:
    return QuestionMultipleChoice(question_name="pick", question_text="Which?", question_options=options)


def orders(job: Job, path: Path) -> list[str]:
    """The options as each interview was shown them."""
    return ["".join(re.findall(r"^\d+\. (.)", r.prompts["pick"], re.MULTILINE)) for r in job.run(path)]


def test_orders_differ_between_interviews_and_are_the_same_in_every_run(tmp_path: Path):
    def job(seed: int = 0) -> Job:
        survey = Survey([pick()], questions_to_randomize=["pick"], seed=seed)
        return survey.by([Agent(name=str(number)) for number in range(40)], Model("test", canned_response="b"))

    first = orders(job(), tmp_path / "a.run")
    assert len(set(first)) > 10
    assert {"".join(sorted(order)) for order in first} == {"abcd"}
    assert orders(job(), tmp_path / "b.run") == first
    assert orders(job(), tmp_path / "a.run") == first
    assert orders(job(seed=1), tmp_path / "c.run") != first


def test_every_order_comes_about_as_often():
    counts = Counter(shuffled(3, 7, ordinal, "q") for ordinal in range(6_000))
    assert set(counts) == set(permutations(range(3)))
    assert all(850 < count < 1_150 for count in counts.values())
    assert sorted(shuffled(500, 0, 1, "q")) == list(range(500))


def test_pinned_options_keep_their_place(tmp_path: Path):
    survey = Survey([pick()], questions_to_randomize=["pick"], options_to_pin={"pick": ["d"]})
    job = survey.by([Agent(name=str(number)) for number in range(20)], Model("test", canned_response="b"))
    shown = orders(job, tmp_path / "a.run")
    assert {order[3] for order in shown} == {"d"}
    assert len(set(shown)) > 3


def test_options_that_data_names_are_randomized_too(tmp_path: Path):
    survey = Survey([pick("{{ agent.options }}")], questions_to_randomize=["pick"])
    job = survey.by([Agent({"options": OPTIONS, "n": n}) for n in range(20)], Model("test", canned_response="b"))
    assert len(set(orders(job, tmp_path / "a.run"))) > 5


def test_a_later_text_shows_the_order_that_was_asked():
    later = QuestionFreeText(question_name="why", question_text="{{ pick.question_options }}")
    first, second = asked_questions(Survey([pick(), later], questions_to_randomize=["pick"]))
    context: Any = {"agent": {}, "scenario": {}}
    asked: Any = first.write(context, 5)[1]
    assert second.write(context, 5)[0].startswith(str(list(asked.question_options)))


def test_what_is_randomized_is_stored_and_checked():
    survey = Survey([pick()], questions_to_randomize=["pick"], options_to_pin={"pick": ["d"]}, seed=3)
    again = Survey.from_row(survey.to_row())
    assert (again.randomizing, again.to_row()) == (survey.randomizing, survey.to_row())
    with pytest.raises(SurveyError, match="no question 'z'"):
        Survey([pick()], questions_to_randomize=["z"])
    with pytest.raises(SurveyError, match="has no options to randomize"):
        Survey([QuestionFreeText(question_name="q", question_text="?")], questions_to_randomize=["q"])
    with pytest.raises(SurveyError, match="options_to_pin names 'pick'"):
        Survey([pick()], options_to_pin={"pick": ["a"]})
    with pytest.raises(SurveyError, match="options_to_pin has 'z', which is no option of 'pick'"):
        Survey([pick()], questions_to_randomize=["pick"], options_to_pin={"pick": ["z"]})
    assert survey.delete_question("pick").questions_to_randomize == []
