"""Questions of a survey by place and by name."""

from edsl import QuestionYesNo, Survey

a, b, c = (QuestionYesNo(question_name=name, question_text=name.upper()) for name in "abc")
survey = Survey([a, b, c])

value = [
    survey[0].question_name,
    survey["c"].question_text,
    [q.question_name for q in survey],
    [q.question_name for q in survey.questions],
    len(survey),
]
