"""A number that is not on the scale is no answer."""

from edsl import Model, QuestionLinearScale

q = QuestionLinearScale(question_name="hunger", question_text="How hungry are you?", question_options=[1, 2, 3])
results = q.by(Model("test", canned_response="7")).run()

value = results.select("hunger").to_list()
