"""The options of a question are the items of an earlier answer."""

from edsl import Model, QuestionList, QuestionMultipleChoice, Survey

a = QuestionList(question_name="cities", question_text="Where have you lived?")
b = QuestionMultipleChoice(
    question_name="best", question_text="Which was best?", question_options="{{ cities.answer }}"
)
results = Survey([a, b]).by(Model("test", canned_response={"cities": '["Oslo", "Lima"]', "best": "Lima"})).run()

value = results.select("cities", "best").to_list()
