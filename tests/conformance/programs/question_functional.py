"""An answer that a function computes from the scenario."""

from edsl import Model, QuestionFunctional, ScenarioList


def total(scenario, agent_traits):
    return scenario["a"] + scenario["b"]


q = QuestionFunctional(question_name="total", func=total)
scenarios = ScenarioList.from_source("list", "a", [1, 2]) * ScenarioList.from_source("list", "b", [10])
results = q.by(scenarios).by(Model("test")).run()

value = results.select("scenario.a", "total").to_list()
