"""Agents without a name are told apart all the same."""

from edsl import Agent, AgentList, Model, QuestionFreeText

agents = AgentList([Agent(traits={"age": 20}), Agent(traits={"age": 30})])
q = QuestionFreeText(question_name="hello", question_text="Who are you?")
results = q.by(agents).by(Model("test", canned_response="me")).run()

value = [
    results.select("agent.age").to_list(),
    len(set(results.select("agent.agent_name").to_list())),
    results.select("agent.agent_index").to_list(),
]
