"""The names of agents' and scenarios' fields and of questions."""

from edsl import Agent, Model, QuestionFreeText, Scenario

q = QuestionFreeText(question_name="q", question_text="What about {{ scenario.city }}?")
results = q.by(Agent(traits={"age": 20})).by(Scenario({"city": "Oslo"})).by(Model("test", canned_response="x")).run()

value = [results.question_names, "age" in results.agent_keys, "city" in results.scenario_keys, results.answer_keys]
