"""Too many or too few selections are no answer."""

from edsl import Model, QuestionCheckBox

q = QuestionCheckBox(
    question_name="drinks",
    question_text="What do you drink?",
    question_options=["Tea", "Coffee", "Milk", "Juice"],
    min_selections=2,
    max_selections=3,
)
value = []
for answer in (["Tea"], ["Tea", "Milk"], ["Tea", "Milk", "Juice", "Coffee"]):
    results = q.by(Model("test", canned_response=str(answer))).run()
    value.append(results.select("drinks").to_list())
