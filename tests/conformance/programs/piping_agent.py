"""Traits of the agent in the text."""

from edsl import Agent, AgentList, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="You are {{ agent.age }}. How is that?")
agents = AgentList([Agent(traits={"age": 20}), Agent(traits={"age": 60})])
results = q.by(agents).by(Model("test", canned_response="fine")).run()
prompts = [str(prompt) for prompt in results.select("prompt.q_user_prompt").to_list()]

value = ["You are 20." in prompts[0], "You are 60." in prompts[1]]
