"""One of many options."""

from edsl import Model, QuestionDropdown

q = QuestionDropdown(
    question_name="state",
    question_text="In which state do you live?",
    question_options=["Ohio", "Texas", "Utah", "Iowa", "Maine", "Idaho", "Nevada"],
)
results = q.by(Model("test", canned_response="Utah")).run()

value = results.select("state").to_list()
