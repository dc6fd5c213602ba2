"""The words around the questions, changed by a survey."""

from pathlib import Path

import pytest

from headrace import Agent, Model, QuestionFreeText, Survey
from headrace.errors import SurveyError

QUESTIONS = [QuestionFreeText(question_name=name, question_text=f"Which {name}?") for name in "ab"]


def test_a_survey_s_own_words_stand_in_its_prompts(tmp_path: Path):
    survey = Survey(QUESTIONS).set_full_memory_mode()
    survey.set_wording(persona="You are this person.", before_memory="So far:", after_memory="Next:")
    job = survey.by([Agent({"age": 1}), Agent({"age": 2}, instruction="Be old.")], Model("test", canned_response="x"))
    first, second = job.run(tmp_path / "a.run")
    assert first.system_prompt.startswith("You are this person.")
    assert second.system_prompt.startswith("Be old.")
    assert first.prompts["b"].startswith("So far:\n\nQuestion: Which a?\nAnswer: x\n\nNext:\n\nWhich b?")
    assert job.prompts().select("system_prompt").first() == first.system_prompt
    assert Survey.from_row(survey.to_row()).wording == survey.wording


def test_our_own_words_are_not_stored_and_a_number_is_no_word():
    assert b"wording" not in Survey(QUESTIONS).set_wording().to_row()
    with pytest.raises(SurveyError, match="persona=3 is no text"):
        Survey(QUESTIONS).set_wording(persona=3)  # pyright: ignore[reportArgumentType]
