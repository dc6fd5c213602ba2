"""Free text is kept as the model wrote it."""

from edsl import Model, QuestionFreeText

q = QuestionFreeText(question_name="why", question_text="Why do you like tea?")
results = q.by(Model("test", canned_response="It is warm.\nAnd it is calm.")).run()

value = results.select("answer.why").to_list()
