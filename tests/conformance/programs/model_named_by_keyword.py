"""Model(model=...), as results call it."""

from edsl import Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(Model(model="test", canned_response="fine")).run()

value = results.select("model.model", "q").to_list()
