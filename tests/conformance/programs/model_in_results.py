"""A model's name, service and parameters are columns."""

from edsl import Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(Model("test", canned_response="fine", temperature=0.3)).run()

value = results.select("model.model", "model.inference_service", "model.temperature").to_list()
