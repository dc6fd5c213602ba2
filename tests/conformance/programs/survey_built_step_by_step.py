"""An empty survey, questions added by name and by plus."""

from edsl import Model, QuestionFreeText, QuestionYesNo, Survey

a = QuestionYesNo(question_name="a", question_text="One?")
b = QuestionYesNo(question_name="b", question_text="Two?")
c = QuestionFreeText(question_name="c", question_text="Three?")
survey = Survey().add_question(a).add_question(b)
survey = survey + Survey([c])
results = survey.by(Model("test", canned_response={"a": "Yes", "b": "No", "c": "x"})).run()

value = [survey.question_names, len(survey), results.select("a", "b", "c").to_list()]
