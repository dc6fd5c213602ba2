"""Agents, scenarios and models in any order."""

from edsl import AgentList, Model, QuestionFreeText, ScenarioList, Survey

q = QuestionFreeText(question_name="q", question_text="What about {{ scenario.city }}?")
survey = Survey([q])
agents = AgentList.from_list("age", [20, 30])
cities = ScenarioList.from_list("city", ["Oslo", "Lima", "Bern"])
model = Model("test", canned_response="nice")
one = survey.by(agents).by(cities).by(model).run()
two = survey.by(model).by(cities).by(agents).run()


def rows(results):
    return sorted(results.select("agent.age", "scenario.city", "q").to_list())


value = [rows(one), rows(one) == rows(two)]
