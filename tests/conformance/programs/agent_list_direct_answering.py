"""A method of answering for each agent of a list, given in a loop over the list."""

from edsl import Agent, AgentList, Model, QuestionFreeText


def answer(self, question, scenario):
    return f"I am {self.traits['age']}."


agents = AgentList([Agent(traits={"age": age}) for age in (20, 30)])
for agent in agents:
    agent.add_direct_question_answering_method(answer)
q = QuestionFreeText(question_name="years", question_text="How old are you?")
results = q.by(agents).by(Model("test", canned_response="never")).run()

value = results.select("years").to_list()
