"""A column renamed in the results themselves."""

from edsl import AgentList, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(AgentList.from_list("age", [30, 20])).by(Model("test", canned_response="fine")).run()

value = results.rename("q", "mood").select("mood").to_list()
