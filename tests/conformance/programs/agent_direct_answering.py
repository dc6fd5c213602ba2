"""A function of the program answers in the model's place."""

from edsl import Agent, Model, QuestionFreeText


def answer(self, question, scenario):
    return f"I am {self.traits['age']}."


agent = Agent(traits={"age": 36})
agent.add_direct_question_answering_method(answer)
q = QuestionFreeText(question_name="years", question_text="How old are you?")
results = q.by(agent).by(Model("test", canned_response="never")).run()

value = results.select("years").to_list()
