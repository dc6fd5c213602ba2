"""Asks one question about each row of a CSV file: PATH CSV LIMIT."""

import sys

from headrace import Model, QuestionFreeText, ScenarioList, Survey
from tests.trouble.programs.telling import outcome_of, tell

path, rows, limit = sys.argv[1:]
survey = Survey([QuestionFreeText(question_name="echo", question_text="Say {{ scenario.number }}")])
job = survey.by(ScenarioList.from_csv(rows)).by(
    Model("test", canned_response=lambda request: f"it is {request.scenario['number']}")
)
tell(started=True)
tell(**outcome_of(lambda: job.run(path, limit=int(limit)).close()))
