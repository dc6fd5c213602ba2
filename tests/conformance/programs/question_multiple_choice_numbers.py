"""Options that are numbers stay numbers."""

from edsl import Model, QuestionMultipleChoice

q = QuestionMultipleChoice(
    question_name="children", question_text="How many children do you have?", question_options=[0, 1, 2, 3]
)
results = q.by(Model("test", canned_response="2")).run()

value = results.select("children").to_list()
