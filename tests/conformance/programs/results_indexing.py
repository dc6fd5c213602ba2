"""Single results: their answer and scenario."""

from edsl import AgentList, Model, QuestionFreeText, Scenario

q = QuestionFreeText(question_name="q", question_text="What about {{ scenario.city }}?")
job = q.by(AgentList.from_list("age", [20, 30])).by(Scenario({"city": "Oslo"}))
results = job.by(Model("test", canned_response="fine")).run()
result = results[0]

value = [
    len(results),
    result["answer"]["q"],
    result["scenario"]["city"],
    [each["answer"]["q"] for each in results],
]
