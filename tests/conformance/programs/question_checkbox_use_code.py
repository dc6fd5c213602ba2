"""With use_code the model answers with the options' numbers."""

from edsl import Model, QuestionCheckBox

q = QuestionCheckBox(
    question_name="drinks",
    question_text="What do you drink?",
    question_options=["Tea", "Coffee", "Milk", "Juice"],
    use_code=True,
)
results = q.by(Model("test", canned_response="[0, 3]")).run()

value = results.select("drinks").to_list()
