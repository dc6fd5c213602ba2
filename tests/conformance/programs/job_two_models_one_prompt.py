"""Two test models that differ only in what they answer."""

from edsl import Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(Model("test", canned_response="fine"), Model("test", canned_response="bad")).run()

value = sorted(results.select("q").to_list())
