"""The prompts of a job, shown without running anything."""

from itertools import islice
from pathlib import Path

import pytest

from headrace import Agent, AgentList, Model, QuestionFreeText, QuestionMultipleChoice, ScenarioList, Survey
from headrace.errors import InvalidInput, SurveyError
from headrace.results.asked.prompt_table import COLUMNS

MOOD = QuestionFreeText(question_name="mood", question_text="How is {{ city }}?")
WHY = QuestionFreeText(question_name="why", question_text="You said {{ mood.answer }}. Why {{ mood.answer[0] }}?")
PICK = QuestionMultipleChoice(question_name="pick", question_text="Which?", question_options="{{ mood.answer }}")


def job(*questions: QuestionFreeText | QuestionMultipleChoice):
    cities = ScenarioList.from_list("city", ["Oslo", "Lima"])
    models = [Model("a", service_name="test"), Model("b", service_name="test", price={"input": 1.0, "output": 2.0})]
    return Survey(questions or [MOOD, WHY]).by([Agent({"age": 1}), Agent({"age": 2})], cities, models)


def test_a_row_for_each_question_of_each_interview_in_the_order_of_the_plan(tmp_path: Path):
    table = job().prompts()
    rows = list(table)
    assert (len(table), len(rows), list(rows[0])) == (16, 16, list(COLUMNS))
    keys = ("interview_index", "agent_index", "scenario_index", "model", "question_name")
    assert [tuple(row[key] for key in keys) for row in rows[:5]] == [
        (0, 0, 0, "a", "mood"), (0, 0, 0, "a", "why"), (1, 0, 0, "b", "mood"), (1, 0, 0, "b", "why"),
        (2, 0, 1, "a", "mood"),
    ]  # fmt: skip
    results = job().run(tmp_path / "a.run")
    shown = table.select("user_prompt", "system_prompt").to_list()[::2]
    assert shown == [(result.prompts["mood"], result.system_prompt) for result in results]
    assert list(tmp_path.iterdir()) == [tmp_path / "a.run"]


def test_answers_that_are_not_given_yet_stand_by_their_names():
    prompts = job(MOOD, WHY, PICK).prompts().select("user_prompt").to_list()
    assert prompts[1].startswith("You said <<mood.answer>>. Why <<mood.answer[0]>>?")
    assert prompts[2].startswith("Which?")


def test_a_memory_is_shown_with_what_it_will_tell():
    survey = Survey([MOOD, WHY]).set_full_memory_mode().by(ScenarioList.from_list("city", ["Oslo"]))
    assert "Question: How is Oslo?\nAnswer: <<mood.answer>>" in survey.prompts().to_list()[1][0]


def test_costs_are_estimated_where_prices_are_known():
    costs = job().prompts().select("model", "estimated_cost").to_list()
    assert costs[0] == ("a", 0.0)
    assert costs[2][1] > 0


def test_combinations_that_where_leaves_out_are_left_out():
    table = job().where("agent.age == 2 and city == 'Lima'").prompts()
    assert (len(table), [row["interview_index"] for row in table]) == (4, [6, 6, 7, 7])


def test_nothing_is_built_for_prompts_that_nobody_reads():
    people = AgentList(Agent({"age": age}) for age in range(20_000))
    table = Survey([QuestionFreeText(question_name="q", question_text="{{ age }}?")]).by(people).prompts()
    assert len(table) == 20_000
    assert [row["user_prompt"][:2] for row in islice(table, 3)] == ["0?", "1?", "2?"]


def test_prompts_are_printed_as_a_bounded_table(capsys: pytest.CaptureFixture[str]):
    people = AgentList(Agent({"age": age}) for age in range(1_000))
    Survey([QuestionFreeText(question_name="q", question_text="{{ age }}?")]).by(people).show_prompts()
    printed = capsys.readouterr().out
    assert "user_prompt" in printed
    assert "interview_index" not in printed
    assert "980 more" in printed
    MOOD.__class__(question_name="q", question_text="Alone?").show_prompts(all=True)
    assert "Alone?" in capsys.readouterr().out


def test_a_survey_or_question_needs_no_model_to_show_its_prompts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("HEADRACE_MODEL", raising=False)
    question = QuestionFreeText(question_name="q", question_text="Alone?")
    row = question.prompts().to_dicts()[0]
    assert (row["user_prompt"].splitlines()[0], row["model"], row["estimated_cost"]) == ("Alone?", None, None)
    assert Survey([question]).prompts().select("user_prompt").first().startswith("Alone?")


def test_prompts_may_be_the_scenarios_of_another_survey():
    table = job().prompts().select("user_prompt", "question_name")
    assert table.relevant_columns() == ["user_prompt", "question_name"]
    assert [dict(each) for each in table.to_scenario_list()] == list(table)


def test_mistakes_are_told_at_once():
    with pytest.raises(SurveyError, match="nothing called 'city'"):
        Survey([MOOD]).prompts()
    with pytest.raises(InvalidInput, match="Did you mean 'user_prompt'"):
        job().prompts().select("user_promt")


def test_prompts_are_shown_with_their_line_breaks_and_the_question_s_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("COLUMNS", raising=False)
    pick = QuestionMultipleChoice(question_name="pick", question_text="Which\none?", question_options=["a", "b"])
    pick.show_prompts()
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0].split() == ["question_name", "user_prompt"]
    assert lines[2].split() == ["pick", "Which"]
    assert lines[3] == "one?"
    pick.by(Agent({"age": 5})).show_prompts()
    assert "system_prompt" in capsys.readouterr().out
