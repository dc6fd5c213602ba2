"""Jobs() takes the survey and what is asked of whom."""

from edsl import AgentList, Jobs, Model, QuestionFreeText, Survey

q = QuestionFreeText(question_name="q", question_text="How are you?")
job = Jobs(survey=Survey([q])).by(AgentList.from_list("age", [20, 30])).by(Model("test", canned_response="fine"))

value = job.run().select("agent.age", "q").to_list()
