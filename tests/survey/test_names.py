"""What names in texts, options and rules stand for, run through whole jobs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headrace import Agent, AgentList, Job, Model, QuestionFreeText, QuestionMultipleChoice, Scenario, Survey
from headrace.errors import PlanMismatch, SurveyError
from headrace.survey.asked_question import asked_questions
from headrace.survey.record import AnswerRecord, AnswerState
from headrace.survey.survey import Survey as StoredSurvey


def free(name: str, text: str = "Well?") -> QuestionFreeText:
    return QuestionFreeText(question_name=name, question_text=text)


def pick(name: str, options: Sequence[Any] | str, text: str = "Which?") -> QuestionMultipleChoice:
    return QuestionMultipleChoice(question_name=name, question_text=text, question_options=options)


def prompts(job: Job, path: Path) -> list[str]:
    """The first line that the last question was asked with, for each interview."""
    return [list(result.prompts.values())[-1].splitlines()[0] for result in job.run(path, progress_bar=False)]


TEST = Model("test")


def asked(text: str, tmp_path: Path, *what: Any) -> str:
    return prompts(Survey([free("q", text)]).by(*what, TEST), tmp_path / "a.run")[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("About {{ city }}?", "About Oslo?"),
        ("You are {{ age }}.", "You are 36."),
        ("{{ review.words[1] }}", "well"),
        ('{{ scenario["Review Text"] }} {{ agent["first name"] | upper }}', "so so ADA"),
        ("{{ scenario['a.b'] }}", "dotted"),
        ("Hello {{ agent.name }}, {{ agent_name }}, {{ agent.agent_name }}", "Hello p1, p1, p1"),
        ("{% for word in review.words %}{{ word }}.{% endfor %}", "all.well."),
        ("{{ city | lower }}{% if age > 30 %}!{% endif %}", "oslo!"),
    ],
)
def test_bare_and_quoted_names_in_a_text(text: str, expected: str, tmp_path: Path):
    agent = Agent({"age": 36, "first name": "Ada"}, name="p1")
    fields = {"city": "Oslo", "review": {"words": ["all", "well"]}, "Review Text": "so so", "a.b": "dotted"}
    assert asked(text, tmp_path, agent, Scenario(fields)) == expected


def test_a_trait_called_name_comes_before_the_agent_s_name(tmp_path: Path):
    assert asked("{{ agent.name }}", tmp_path, Agent({"name": "trait"}, name="given")) == "trait"


@pytest.mark.parametrize(
    ("text", "what", "told"),
    [
        (
            "{{ city }}",
            [Agent({"city": "a"}), Scenario({"city": "b"})],
            r"Write {{ agent.city }} or {{ scenario.city }}",
        ),
        ("{{ town }}", [Scenario({"city": "b"})], "nothing called 'town'.*Known here: city"),
        ("{{ citty }}", [Scenario({"city": "b"})], "Did you mean 'city'"),
        ("{{ city }}", [], r"add them with .by\(\)"),
        ("{{ q }}", [Agent({"q": "a"})], r"Write {{ q.answer }}; for a field of that name {{ agent.q }}"),
        ('{{ scenario["Review Txt"] }}', [Scenario({"Review Text": "b"})], "Did you mean 'Review Text'"),
    ],
)
def test_a_bare_name_of_two_groups_or_none_is_an_error_before_anything_runs(
    text: str, what: list[Any], told: str, tmp_path: Path
):
    with pytest.raises(SurveyError, match=told):
        asked(text, tmp_path, *what)
    assert list(tmp_path.iterdir()) == []


def test_a_bare_name_in_a_rule_that_a_trait_and_a_question_share_is_an_error(tmp_path: Path):
    survey = Survey([free("mood"), free("why", "{{ agent.mood }} {{ mood.answer }}")])
    job = survey.by(Agent({"mood": "calm"}), Model("test", canned_response="fine"))
    assert prompts(job, tmp_path / "a.run") == ["calm fine"]
    survey.add_skip_rule("why", "mood == 'fine'")
    with pytest.raises(SurveyError, match=r"'mood' could be 2 things. Write agent.mood or mood.answer"):
        survey.by(Agent({"mood": "calm"}), Model("test")).run(tmp_path / "b.run")


def test_names_are_resolved_over_all_rows_not_by_row(tmp_path: Path):
    agents = AgentList([Agent({"age": 1}), Agent({"city": "Rome"})])
    with pytest.raises(SurveyError, match=r"agent\.city"):
        asked("{{ city }}", tmp_path, agents, Scenario({"city": "Oslo"}))
    results = Survey([free("q", "{{ city }}")]).by(agents, TEST).run(tmp_path / "a.run")
    assert [bool(result.failures) for result in results] == [True, False]


@pytest.mark.parametrize("rule", ["mood == 'Bad'", "{{ mood.answer }} == 'Bad'", "city == 'Oslo'", "age > 30"])
def test_rules_take_bare_names(rule: str, tmp_path: Path):
    survey = Survey([free("mood"), free("why", "Why?")]).add_skip_rule("why", rule)
    job = survey.by(Agent({"age": 36}), Scenario({"city": "Oslo"}), Model("test", canned_response="Bad"))
    assert [dict(result.answer) for result in job.run(tmp_path / "a.run")] == [{"mood": "Bad", "why": None}]


def test_what_names_stand_for_is_stored_with_the_plan(tmp_path: Path):
    def job(*agents: Agent) -> Job:
        return Survey([free("q", "{{ age }}")]).by(list(agents), TEST)

    first = Agent({"age": 1})
    assert prompts(job(first), tmp_path / "a.run") == ["1"]
    assert Job.open(tmp_path / "a.run").survey.resolved == {"age": "agent.age"}
    grown = job(first, Agent({"age": 2})).run(tmp_path / "a.run", extend=True)
    assert [result.prompts["q"].splitlines()[0] for result in grown] == ["1", "2"]
    with pytest.raises(PlanMismatch):
        Survey([free("q", "{{ age }}")]).by(Scenario({"age": 1}), TEST).run(tmp_path / "a.run")


def test_a_survey_without_bare_names_is_stored_as_before():
    survey = Survey([free("q", "{{ scenario.city }}")])
    job = survey.by(Scenario({"city": "Oslo"}), Model("test"))
    job.check()
    assert job.survey.to_row() == survey.to_row()
    assert b"names" not in survey.to_row()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("You said {{ first.answer }}.", "You said Bolt."),
        ("{{ first.answer[0] }}", "B"),
        ("{{ first.question_text }}", "Of Acme?"),
        ("{{ first.question_options[1] }} {{ first.question_options | length }}", "Bolt 2"),
        ("{{ first.comment }}", "since"),
        ("{{ first.answer | upper }}", "BOLT"),
    ],
)
def test_a_later_text_may_show_what_was_asked_and_answered(text: str, expected: str, tmp_path: Path):
    survey = Survey([pick("first", ["{{ brand }}", "Bolt"], "Of {{ brand }}?"), free("second", text)])
    model = Model("test", canned_response={"first": {"answer": "Bolt", "comment": "since"}, "second": "x"})
    assert prompts(survey.by(Scenario({"brand": "Acme"}), model), tmp_path / "a.run") == [expected]


@pytest.mark.parametrize(
    "options",
    [
        "{{ brands }}",
        "{{ scenario.brands }}",
        '{{ scenario["My Brands"] }}',
        "{{ more.names }}",
        "{{ scenario.brands | list }}",
        ["{{ brands[0] }}", "{{ brands[1] }}"],
    ],
)
def test_options_may_be_piped_by_any_name(options: Sequence[Any] | str, tmp_path: Path):
    brands = ["Acme", "Bolt"]
    scenario = Scenario({"brands": brands, "My Brands": brands, "more": {"names": brands}})
    job = Survey([pick("q", options)]).by(scenario, Model("test", canned_response="Bolt"))
    assert [dict(result.answer) for result in job.run(tmp_path / "a.run")] == [{"q": "Bolt"}]


def test_options_that_a_template_makes_empty_fail_that_interview_alone(tmp_path: Path):
    given = (["a", "b"], [], ["a", "d"], "a, b", ["{{ x }}", "a"], None)
    scenarios = [Scenario({"brands": brands}) for brands in given]
    job = Survey([pick("q", "{{ scenario.brands }}")]).by(scenarios, Model("test", canned_response="a"))
    results = list(job.run(tmp_path / "a.run"))
    assert [result.answer["q"] for result in results] == ["a", None, "a", None, "a", None]
    assert results[1].failures[0].message == "Question 'q' has 0 option(s)."
    assert "{{ x }}" in results[4].prompts["q"]


def test_a_scenario_field_may_be_called_like_one_of_ours(tmp_path: Path):
    names = ("status", "answer", "model", "iteration", "interview", "question_text", "ordinal", "self")
    scenario = Scenario({name: f"my {name}" for name in names})
    text = " ".join(f"{{{{ scenario.{name} }}}}" for name in names)
    assert asked(text, tmp_path, scenario) == " ".join(f"my {name}" for name in names)
    (tmp_path / "x").mkdir()
    assert asked("{{ status }} {{ ordinal }}", tmp_path / "x", scenario) == "my status my ordinal"


def test_an_interview_that_goes_on_shows_what_was_asked_before_it_stopped():
    survey = Survey([free("a", "Of {{ scenario.x }}?"), free("b", "{{ a.question_text }} {{ a.answer }}")])
    first, second = asked_questions(survey)
    context: Any = {"agent": {}, "scenario": {"x": "tea"}}
    first.put_answer(
        context, AnswerRecord(0, AnswerState.ANSWERED), "yes"
    )  # journaled before; its prompt is not written again
    assert second.write(context)[0].startswith("Of tea? yes")


def test_data_is_never_a_template_nor_a_name(tmp_path: Path):
    scenario = Scenario({"city": "{{ secret }}", "secret": "no"})
    assert asked("{{ city }}", tmp_path, scenario) == "{{ secret }}"


def test_a_stored_survey_keeps_what_its_names_stand_for():
    survey = Survey([free("q", "{{ city }}")])
    survey.resolved = {"city": "scenario.city"}
    assert StoredSurvey.from_row(survey.to_row()).resolved == {"city": "scenario.city"}
