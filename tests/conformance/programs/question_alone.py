"""The first lines of EDSL's own tour: a question, a model, an answer."""

from edsl import Model, QuestionFreeText

q = QuestionFreeText(question_name="capital", question_text="What is the capital of France?")
results = q.by(Model("test", canned_response="Paris")).run()

value = [len(results), results.select("capital").to_list()]
