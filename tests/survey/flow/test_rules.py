"""Surveys put together piece by piece, and the rules that are refused at once."""

import pickle

import pytest

from headrace import Agent, AgentList, EndOfSurvey, Model, QuestionFreeText, ScenarioList, Survey
from headrace.errors import ExpressionError, SurveyError
from headrace.survey.flow.route import Route


def free(name: str, text: str = "Well?") -> QuestionFreeText:
    return QuestionFreeText(question_name=name, question_text=text)


def survey_of(*names: str) -> Survey:
    return Survey([free(name) for name in names])


def answers(survey: Survey, tmp_path, **canned: str) -> list[str | None]:
    result = survey.by(Model("test", canned_response=dict.fromkeys("abcde", "Yes") | canned)).run(tmp_path / "a")[0]
    assert result.failures == []
    return [result.answer[name] for name in survey.question_names]


def test_a_survey_may_begin_empty_and_is_refused_only_when_it_runs(tmp_path):
    survey = Survey()
    assert (len(survey), survey.question_names, list(survey)) == (0, [], [])
    with pytest.raises(SurveyError, match=r"has no questions\. Add at least one"):
        survey.by(Model("test")).run(tmp_path / "a.run")
    assert survey.add_question(free("a")) is survey
    assert answers(survey, tmp_path) == ["Yes"]


def test_questions_are_added_inserted_found_and_removed():
    survey = survey_of("a", "c").add_question(free("b"), index=1).add_question(free("d"))
    assert survey.question_names == ["a", "b", "c", "d"]
    assert survey["b"] is survey[1] is survey.questions[1]
    assert [question.question_name for question in survey] == survey.question_names
    assert (survey[1:3].question_names, survey[["d", "a"]].question_names) == (["b", "c"], ["d", "a"])
    assert survey.delete_question("a").delete_question(0).question_names == ["c", "d"]
    assert (survey + survey_of("e") + free("f")).question_names == ["c", "d", "e", "f"]
    assert survey.question_names == ["c", "d"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda s: s.add_question(free("A")), "'a' and 'A'"),
        (lambda s: s.add_question(free("x"), index=9), "index=9 is no place in a survey of 3"),
        (lambda s: s.add_question(free("x", "{{ c.answer }}"), index=1), "'c' is not asked before it"),
        (lambda s: s.delete_question("a"), "Question 'b', question_text: there is no question 'a'"),
        (lambda s: s.delete_question("z"), "no question 'z'"),
        (lambda s: s.delete_question(3), "no question number 3"),
        (lambda s: s["bb"], "Did you mean 'b'"),
        (lambda s: s + s, "Two questions are called"),
        (lambda s: Survey(s, questions_to_randomize=["z"]), "no question 'z'"),
    ],
)
def test_a_change_that_does_not_fit_is_refused_and_leaves_the_survey_as_it_was(change, told: str):
    survey = Survey([free("a"), free("b", "{{ a.answer }}?"), free("c")]).add_rule("a", "a == 1", "c")
    before = survey.to_row()
    with pytest.raises(SurveyError, match=told):
        change(survey)
    assert survey.to_row() == before


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (("b", "c == 1", "c"), "The rule after 'b': 'c' is not asked before it"),
        (("b", "d.answer == 1", EndOfSurvey), "The rule after 'b': there is no question 'd'"),
        (("b", "a.anwser == 1", EndOfSurvey), "'a.anwser' is not known. Write one of a.answer"),
        (("b", "True", "a"), "after 'b' goes back to 'a'. Name a question that comes later, or EndOfSurvey"),
        (("b", "True", "b"), "goes to the same question"),
        (("b", "True", "z"), "no question 'z'"),
        (("b", "True", 7), "no question number 7"),
        (("z", "True", "c"), "no question 'z'"),
        (("b", "b == 1", "c", True), "The rule before 'b': 'b' is not asked before it"),
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused_at_once(rule, told: str):
    survey = survey_of("a", "b", "c")
    with pytest.raises(SurveyError, match=told):
        survey.add_rule(*rule)
    assert survey.rules == ()


def test_a_rule_is_data_and_never_evaluated_as_python():
    with pytest.raises(ExpressionError):
        survey_of("a", "b").add_stop_rule("a", "__import__('os')")


@pytest.mark.parametrize(
    "spelling",
    ["a == 'Yes'", "a.answer == 'Yes'", "{{ a.answer }} == 'Yes'", "{{ a }} == 'Yes'", "'{{ a.answer }}' == 'Yes'"],
)
def test_a_rule_may_name_an_answer_in_any_spelling(spelling: str, tmp_path):
    assert answers(survey_of("a", "b").add_stop_rule("a", spelling), tmp_path) == ["Yes", None]


@pytest.mark.parametrize(
    "spelling",
    [
        "scenario.city == 'Bern' and agent.age > 30",
        "{{ scenario.city }} == 'Bern' and {{ agent.age }} > 30",
        "'{{ scenario.city }}' == 'Bern' and {{ agent.age }} > 30",
        "'{{ scenario.city }}' == \"Bern\" and '{{ agent.age }}' == '40'",
        "{{ city }} == 'Bern' and age > 30",
    ],
)
def test_rules_conditions_and_filters_know_the_same_spellings_of_fields(spelling: str, tmp_path):
    people, cities = AgentList([Agent(age=20), Agent(age=40)]), ScenarioList.from_list("city", ["Bern", "Oslo"])
    model = Model("test", canned_response="Yes")
    job = survey_of("a", "b").add_skip_rule("b", spelling).by(people).by(cities).by(model)
    results = job.run(tmp_path / "a.run")
    assert [result.answer["b"] for result in results] == ["Yes", "Yes", None, "Yes"]
    assert results.filter(spelling).select("agent.age", "scenario.city").to_list() == [(40, "Bern")]
    assert len(job.where(spelling).run(tmp_path / "b.run")) == 1


_YES = "{{ a.answer }} == 'Yes'"


@pytest.mark.parametrize(
    ("survey", "expected"),
    [  # as EDSL 1.0.9 answers them
        (survey_of(*"abcde").add_rule("a", _YES, "c").add_rule("a", _YES, "e"), "a...e"),
        (survey_of(*"abcde").add_rule("a", _YES, "e").add_rule("a", _YES, "c"), "a.cde"),
        (survey_of(*"abcde").add_stop_rule("a", _YES).add_rule("a", _YES, "c"), "a.cde"),
        (survey_of(*"abcde").add_rule("b", _YES, "d", before_rule=True), "a..de"),
        (survey_of(*"abcde").add_skip_rule("b", _YES).add_stop_rule("b", _YES), "a.cde"),
        (survey_of(*"abcde").add_skip_rule("b", _YES).add_rule("b", _YES, "d"), "a.cde"),
        (survey_of(*"abcde").add_rule("a", _YES, "c").add_stop_rule("b", _YES), "a.cde"),
        (survey_of(*"abcde").add_rule("a", _YES, 3), "a..de"),
        (survey_of(*"abcde").add_rule("a", _YES, 5), "a...."),
        (survey_of(*"abcde").add_rule("a", "a == 'No'", "c").add_stop_rule("d", _YES), "abcd."),
    ],
)
def test_the_last_added_rule_decides_and_a_skipped_question_has_no_say(survey: Survey, expected: str, tmp_path):
    found = answers(survey, tmp_path)
    assert "".join(name if answer else "." for name, answer in zip("abcde", found, strict=True)) == expected


def test_rules_follow_their_questions_when_others_are_added_or_removed(tmp_path):
    survey = survey_of("a", "c", "d").add_rule("a", _YES, "d").add_question(free("b"), index=1)
    assert answers(survey, tmp_path / "1") == ["Yes", None, None, "Yes"]
    assert answers(survey.delete_question("d").add_question(free("e")), tmp_path / "2") == ["Yes", None, None, None]


def test_a_survey_with_rules_survives_being_stored_and_tells_what_differs():
    survey = survey_of("a", "b", "c").add_rule("a", _YES, "c").add_stop_rule("b", "agent.age > 5")
    again = Survey.from_row(survey.to_row())
    assert (again.rules, again.to_row()) == (survey.rules, survey.to_row())
    assert survey_of("a").to_row() == b'{"questions":[%b],"skip":{}}' % (
        b'{"kind":"free_text","question_name":"a","question_text":"Well?"}'
    )
    assert "to c where" in survey._repr_html_()


def test_the_end_of_a_survey_is_one_object():
    assert pickle.loads(pickle.dumps(EndOfSurvey)) is EndOfSurvey
    assert (repr(EndOfSurvey), bool(EndOfSurvey)) == ("EndOfSurvey", False)


def test_a_question_that_shows_another_s_text_waits_for_what_that_text_needs_and_not_for_its_answer():
    survey = Survey([free("a"), free("b", "About {{ a.answer }}?"), free("c", "I asked {{ b.question_text }}")])
    assert [step.waits for step in Route(survey).steps] == [set(), {0}, {0}]
