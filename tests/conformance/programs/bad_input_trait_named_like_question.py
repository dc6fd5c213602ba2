"""A trait and a question of one name are kept apart by their prefix."""

from edsl import Agent, Model, QuestionNumerical

q = QuestionNumerical(question_name="age", question_text="How old do you feel?")
results = q.by(Agent(traits={"age": 36})).by(Model("test", canned_response="20")).run()

value = results.select("agent.age", "answer.age").to_list()
