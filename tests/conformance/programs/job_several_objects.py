"""Single agents and scenarios, several in one call."""

from edsl import Agent, Model, QuestionFreeText, Scenario

q = QuestionFreeText(question_name="q", question_text="What about {{ scenario.city }}?")
job = q.by(Agent(traits={"age": 20}), Agent(traits={"age": 30})).by(
    Scenario({"city": "Oslo"}), Scenario({"city": "Lima"})
)
results = job.by(Model("test", canned_response="nice")).run()

value = sorted(results.select("agent.age", "scenario.city", "q").to_list())
