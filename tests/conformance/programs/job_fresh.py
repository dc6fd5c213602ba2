"""fresh asks again and gets an answer again."""

from edsl import Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
job = q.by(Model("test", canned_response="fine"))
job.run()
results = job.run(fresh=True)

value = [len(results), results.select("q").to_list()]
