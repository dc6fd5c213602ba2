"""Memory: which earlier questions a prompt tells, in which words, and what it waits for."""

from pathlib import Path
from typing import Any

import pytest

from headrace import Job, Model, QuestionFreeText, QuestionMultipleChoice, Scenario, Survey
from headrace.errors import SurveyError
from headrace.survey.wording.remembering import memory_line

ANSWERS = {"a": "red", "b": "green", "c": "blue", "d": "white"}


def free(name: str, text: str | None = None) -> QuestionFreeText:
    return QuestionFreeText(question_name=name, question_text=text or f"Which {name}?")


def survey() -> Survey:
    return Survey([free(name) for name in "abcd"])


def remembered(job: Job, path: Path, question: str = "d") -> list[str]:
    """The answers that the question's prompt tells of earlier ones."""
    (result,) = job.run(path)
    prompt = result.prompts[question]
    return [line.removeprefix("Answer: ") for line in prompt.splitlines() if line.startswith("Answer: ")]


MODES: dict[str, Any] = {
    "full": (lambda s: s.set_full_memory_mode(), ["red", "green", "blue"]),
    "lagged": (lambda s: s.set_lagged_memory(2), ["green", "blue"]),
    "none": (lambda s: s.set_lagged_memory(0), []),
    "targeted": (lambda s: s.add_targeted_memory("d", "b"), ["green"]),
    "collection": (lambda s: s.add_memory_collection("d", ["c", "a"]), ["red", "blue"]),
    "both": (lambda s: s.add_targeted_memory(s.questions[3], s.questions[0]).set_lagged_memory(1), ["red", "blue"]),
}


@pytest.mark.parametrize(("change", "expected"), MODES.values(), ids=MODES)
def test_each_mode_tells_the_questions_it_names(change: Any, expected: list[str], tmp_path: Path):
    job = change(survey()).by(Model("test", canned_response=ANSWERS))
    assert remembered(job, tmp_path / "a.run") == expected


def test_a_question_is_told_as_it_was_asked_and_stands_before_the_new_one(tmp_path: Path):
    asked = Survey([free("a", "Of {{ city }}?"), free("b", "Why?")]).add_targeted_memory("b", "a")
    (result,) = asked.by(Scenario({"city": "Oslo"}), Model("test", canned_response=ANSWERS)).run(tmp_path / "a.run")
    assert "Question: Of Oslo?\nAnswer: red" in result.prompts["b"]
    assert result.prompts["b"].index("Answer: red") < result.prompts["b"].index("Why?")
    assert "Answer: red" not in result.prompts["a"]


def test_skipped_and_failed_questions_are_left_out(tmp_path: Path):
    pick = QuestionMultipleChoice(question_name="b", question_text="Which b?", question_options=["x", "y"])
    asked = Survey([free("a"), pick, free("c"), free("d")]).set_full_memory_mode().add_skip_rule("c", "a == 'red'")
    job = asked.by(Model("test", canned_response=ANSWERS))
    (result,) = job.run(tmp_path / "a.run")
    assert (result.answer["d"], [failure.question for failure in result.failures]) == ("white", ["b"])
    assert [line for line in result.prompts["d"].splitlines() if line.startswith("Answer: ")] == ["Answer: red"]


def test_a_memory_of_a_later_or_unknown_question_is_an_error():
    with pytest.raises(SurveyError, match="'a' cannot remember 'b', which is not asked before it"):
        survey().add_targeted_memory("a", "b")
    with pytest.raises(SurveyError, match="'a' cannot remember 'a'"):
        survey().add_memory_collection("a", ["a"])
    with pytest.raises(SurveyError, match="no question 'z'"):
        survey().add_targeted_memory("d", "z")
    with pytest.raises(SurveyError, match="lags=-1"):
        survey().set_lagged_memory(-1)


def test_a_memory_is_stored_and_follows_its_questions():
    asked = survey().set_full_memory_mode()
    again = Survey.from_row(asked.to_row())
    assert again.memory == asked.memory
    assert again.to_row() == asked.to_row()
    assert asked.delete_question("b").memory == {"c": ("a",), "d": ("a", "c")}
    assert b"memory" not in survey().to_row()
    joined = survey()[:2].set_full_memory_mode() + survey()[2:].set_full_memory_mode()
    assert joined.memory == {"b": ("a",), "d": ("c",)}


def test_answers_in_words():
    assert memory_line("Q?", ["a", 1]) == "Question: Q?\nAnswer: a, 1"
    assert memory_line("Q?", {"a": [1]}) == 'Question: Q?\nAnswer: {"a":[1]}'
    assert memory_line("Q?", 3.5) == "Question: Q?\nAnswer: 3.5"


def test_a_model_that_waits_gets_the_same_memory(tmp_path: Path):
    job = survey().set_full_memory_mode().by(Model("test", canned_response=ANSWERS, latency_s=0.001))
    assert remembered(job, tmp_path / "a.run") == ["red", "green", "blue"]
