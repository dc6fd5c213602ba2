"""Yes or no."""

from edsl import Model, QuestionYesNo

q = QuestionYesNo(question_name="vegan", question_text="Are you vegan?")
results = q.by(Model("test", canned_response="No")).run()

value = [results.select("vegan").to_list(), q.question_options]
