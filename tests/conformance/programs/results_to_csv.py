"""A CSV file of the selected columns."""

import csv
from pathlib import Path

from edsl import AgentList, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(AgentList.from_list("age", [20, 30])).by(Model("test", canned_response="fine")).run()
results.select("agent.age", "answer.q").to_csv("out.csv")

value = list(csv.reader(Path("out.csv").read_text().splitlines()))
