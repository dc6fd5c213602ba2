"""Question() makes a question of the kind that it is told."""

from edsl import Model, Question

q = Question("multiple_choice", question_name="color", question_text="Which?", question_options=["Red", "Blue"])
results = q.by(Model("test", canned_response="Blue")).run()

value = [q.question_type, type(q).__name__, results.select("color").to_list()]
