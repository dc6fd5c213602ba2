"""Several of the options, and something of one's own."""

from edsl import Model, QuestionCheckBoxWithOther

q = QuestionCheckBoxWithOther(
    question_name="drinks", question_text="What do you drink?", question_options=["Tea", "Coffee", "Milk"]
)
results = q.by(Model("test", canned_response='["Tea", "Coffee"]')).run()

value = results.select("drinks").to_list()
