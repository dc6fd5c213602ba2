"""A function that reads the agent's traits."""

from edsl import Agent, AgentList, Model, QuestionFunctional


def is_adult(scenario, agent_traits):
    return agent_traits["age"] >= 18


q = QuestionFunctional(question_name="adult", func=is_adult)
agents = AgentList([Agent(traits={"age": 12}), Agent(traits={"age": 40})])
results = q.by(agents).by(Model("test")).run()

value = results.select("agent.age", "adult").to_list()
