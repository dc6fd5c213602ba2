"""A survey with a model, run with nothing else."""

from edsl import Model, QuestionFreeText, Survey

q = QuestionFreeText(question_name="q", question_text="How are you?")
job = Survey([q]).by(Model("test", canned_response="fine"))
results = job.run(disable_remote_inference=True)

value = [type(results).__name__, len(results)]
