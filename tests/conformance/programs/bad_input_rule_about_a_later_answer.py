"""A rule that needs an answer that is not there yet is refused."""

from edsl import QuestionYesNo, Survey

a, b = (QuestionYesNo(question_name=name, question_text=name.upper()) for name in "ab")
try:
    Survey([a, b]).add_skip_rule("a", "b == 'Yes'")
    value = "made"
except Exception:
    value = "refused"
