"""Groups of questions have a name."""

from edsl import QuestionYesNo, Survey

a, b, c, d = (QuestionYesNo(question_name=name, question_text=name.upper()) for name in "abcd")
survey = Survey([a, b, c, d]).add_question_group("a", "b", "first").add_question_group("c", "d", "second")

value = {name: list(places) for name, places in survey.question_groups.items()}
