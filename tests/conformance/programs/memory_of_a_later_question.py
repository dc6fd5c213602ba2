"""A memory of what has not been asked yet is refused."""

from edsl import QuestionYesNo, Survey

a, b = (QuestionYesNo(question_name=name, question_text=name.upper()) for name in "ab")
try:
    Survey([a, b]).add_targeted_memory("a", "b")
    value = "made"
except Exception:
    value = "refused"
