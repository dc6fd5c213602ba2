"""A template that is filled and never sent to a model."""

from edsl import Model, QuestionCompute, QuestionNumerical, Survey

price = QuestionNumerical(question_name="price", question_text="What is the price?")
double = QuestionCompute(question_name="double", question_text="{{ price.answer * 2 }}")
results = Survey([price, double]).by(Model("test", canned_response={"price": "21"})).run()

value = [str(answer) for answer in results.select("double").to_list()]
