"""Scenario fields may have any name."""

from edsl import Model, QuestionFreeText, Scenario

q = QuestionFreeText(question_name="q", question_text="Is it {{ scenario.status }}?")
results = q.by(Scenario({"status": "open", "ordinal": 3})).by(Model("test", canned_response="yes")).run()

value = results.select("scenario.status", "scenario.ordinal", "answer.q").to_list()
