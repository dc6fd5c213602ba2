"""A column that is not there is an error."""

from edsl import Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(Model("test", canned_response="fine")).run()
try:
    results.select("nothing").to_list()
    value = "selected"
except Exception:
    value = "refused"
