"""Traits in the prompt, in the results and as attributes."""

from edsl import Agent, Model, QuestionFreeText

agent = Agent(name="Ada", traits={"age": 36, "job": "mathematician"})
q = QuestionFreeText(question_name="hello", question_text="Who are you?")
results = q.by(agent).by(Model("test", canned_response="Ada")).run()
prompt = str(results.select("prompt.hello_system_prompt").to_list()[0])

value = [
    agent.name,
    dict(agent.traits),
    agent.age,
    results.select("agent.agent_name", "agent.age", "agent.job").to_list(),
    "mathematician" in prompt,
]
