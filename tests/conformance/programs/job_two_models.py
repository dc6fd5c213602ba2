"""Two models answer the same survey."""

from edsl import Model, ModelList, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
models = ModelList(
    [Model("test", canned_response="fine", temperature=0.1), Model("test", canned_response="bad", temperature=0.9)]
)
results = q.by(models).run()

value = [len(results), sorted(results.select("q").to_list())]
