"""The flow of a survey can be drawn, and the survey is as it was."""

from edsl import QuestionYesNo, Survey

a, b, c = (QuestionYesNo(question_name=name, question_text=name.upper()) for name in "abc")
survey = Survey([a, b, c]).add_rule("a", "a == 'Yes'", "c").add_stop_rule("b", "b == 'No'")
survey.show_flow()

value = survey.question_names
