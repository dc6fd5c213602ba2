"""A rule that leads back to an earlier question is refused."""

from edsl import QuestionYesNo, Survey

a, b, c = (QuestionYesNo(question_name=name, question_text=name.upper()) for name in "abc")
try:
    Survey([a, b, c]).add_rule("c", "c == 'Yes'", "a")
    value = "made"
except Exception:
    value = "refused"
