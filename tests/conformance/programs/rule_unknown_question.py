"""A rule about a question that is not there is refused."""

from edsl import QuestionYesNo, Survey

a, b = (QuestionYesNo(question_name=name, question_text=name.upper()) for name in "ab")
try:
    Survey([a, b]).add_rule("nothing", "a == 'Yes'", "b")
    value = "made"
except Exception:
    value = "refused"
