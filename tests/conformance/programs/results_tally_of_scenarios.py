"""A tally of two columns."""

from edsl import Model, QuestionYesNo, ScenarioList

q = QuestionYesNo(question_name="q", question_text="Is {{ scenario.city }} large?")
job = q.by(ScenarioList.from_list("city", ["Oslo", "Lima"])).by(Model("test", canned_response="Yes"))
results = job.run(n=2)

value = results.select("scenario.city", "q").tally().to_dicts()
