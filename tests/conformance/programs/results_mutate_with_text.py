"""A computed column out of text."""

from edsl import AgentList, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(AgentList.from_list("job", ["cook", "clerk"])).by(Model("test", canned_response="fine")).run()

value = results.mutate("is_cook = job == 'cook'").select("job", "is_cook").to_list()
