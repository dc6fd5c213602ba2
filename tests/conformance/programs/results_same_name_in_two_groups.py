"""A field of the same name in two groups: neither overwrites the other."""

from edsl import Agent, Model, QuestionFreeText, Scenario

q = QuestionFreeText(question_name="q", question_text="What about {{ scenario.city }}?")
job = q.by(Agent(traits={"city": "Lima"})).by(Scenario({"city": "Oslo"}))
results = job.by(Model("test", canned_response="x")).run()

value = results.select("agent.city", "scenario.city").to_dicts()
