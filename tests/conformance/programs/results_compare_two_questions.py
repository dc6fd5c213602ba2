"""Answers of two questions side by side, for each scenario."""

from edsl import Model, QuestionLinearScale, QuestionYesNo, ScenarioList, Survey

like = QuestionYesNo(question_name="like", question_text="Do you like {{ scenario.food }}?")
rate = QuestionLinearScale(
    question_name="rate", question_text="Rate {{ scenario.food }}.", question_options=[1, 2, 3, 4, 5]
)
job = Survey([like, rate]).by(ScenarioList.from_list("food", ["rice", "fish"]))
results = job.by(Model("test", canned_response={"like": "Yes", "rate": "4"})).run()

value = results.select("food", "like", "rate").to_dicts()
