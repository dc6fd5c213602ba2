"""A survey without some of its questions."""

from edsl import QuestionYesNo, Survey

a, b, c = (QuestionYesNo(question_name=name, question_text=name.upper()) for name in "abc")
survey = Survey([a, b, c])

value = [survey.drop("b").question_names, survey.question_names]
