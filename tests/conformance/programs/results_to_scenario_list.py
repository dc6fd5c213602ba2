"""Answers become the scenarios of the next survey."""

from edsl import AgentList, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(AgentList.from_list("age", [20, 30])).by(Model("test", canned_response="fine")).run()
scenarios = results.select("agent.age", "answer.q").to_scenario_list()
again = QuestionFreeText(question_name="more", question_text="You said {{ scenario.q }}. Why?")
second = again.by(scenarios).by(Model("test", canned_response="so")).run()

value = [
    type(scenarios).__name__,
    [dict(scenario) for scenario in scenarios],
    second.select("scenario.age", "scenario.q", "more").to_list(),
]
