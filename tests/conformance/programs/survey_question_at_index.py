"""add_question takes the place to insert at."""

from edsl import QuestionYesNo, Survey

a, b, c = (QuestionYesNo(question_name=name, question_text=name.upper()) for name in "abc")
survey = Survey([a, b]).add_question(c, index=1)

value = survey.question_names
