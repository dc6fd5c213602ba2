"""How much one would buy at each price."""

from edsl import Model, QuestionDemand

q = QuestionDemand(question_name="coffee", question_text="How many cups a week would you buy?", prices=[1.0, 2.0, 4.0])
results = q.by(Model("test", canned_response="[10, 6, 1]")).run()

value = results.select("coffee").to_list()
