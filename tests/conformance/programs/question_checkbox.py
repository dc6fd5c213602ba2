"""Several of the options."""

from edsl import Model, QuestionCheckBox

q = QuestionCheckBox(
    question_name="drinks", question_text="What do you drink?", question_options=["Tea", "Coffee", "Milk", "Juice"]
)
results = q.by(Model("test", canned_response='["Tea", "Milk"]')).run()

value = results.select("drinks").to_list()
