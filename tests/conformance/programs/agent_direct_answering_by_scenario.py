"""The function sees the question and the scenario."""

from edsl import Agent, Model, QuestionNumerical, ScenarioList


def answer(self, question, scenario):
    return scenario["price"] * 2 if question.question_name == "offer" else 0


agent = Agent(traits={"age": 36})
agent.add_direct_question_answering_method(answer)
q = QuestionNumerical(question_name="offer", question_text="What would you pay for {{ scenario.price }}?")
results = q.by(agent).by(ScenarioList.from_list("price", [3, 4])).by(Model("test")).run()

value = results.select("scenario.price", "offer").to_list()
