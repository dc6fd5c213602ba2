"""A number drawn from nothing: only its being there can be compared."""

from edsl import Model, QuestionRandom

q = QuestionRandom(question_name="draw")
results = q.by(Model("test")).run()
(answer,) = results.select("draw").to_list()

value = [type(answer).__name__, answer is not None]
