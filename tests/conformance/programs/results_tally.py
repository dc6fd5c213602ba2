"""How often each answer was given."""

from edsl import Agent, AgentList, Model, QuestionMultipleChoice


def answer(self, question, scenario):
    return "red" if self.traits["age"] < 35 else "blue"


people = [Agent(traits={"age": age}) for age in (20, 30, 40)]
for person in people:
    person.add_direct_question_answering_method(answer)
q = QuestionMultipleChoice(question_name="color", question_text="Which?", question_options=["red", "blue"])
results = q.by(AgentList(people)).by(Model("test")).run()

value = [results.select("color").tally().to_dicts(), results.select("color").tally(output="dict")]
