"""What would be sent, without sending anything."""

from edsl import AgentList, Model, QuestionFreeText, ScenarioList, Survey

a = QuestionFreeText(question_name="a", question_text="What about {{ scenario.city }}?")
b = QuestionFreeText(question_name="b", question_text="Anything else?")
job = Survey([a, b]).by(AgentList.from_list("age", [20, 30])).by(ScenarioList.from_list("city", ["Oslo", "Lima"]))
prompts = job.by(Model("test")).prompts()
texts = [str(text) for text in prompts.select("user_prompt").to_list()]

value = [
    len(texts),
    sum("What about Oslo?" in text for text in texts),
    sum("Anything else?" in text for text in texts),
    {"user_prompt", "system_prompt", "question_name", "model", "estimated_cost"} <= set(prompts.relevant_columns()),
]
