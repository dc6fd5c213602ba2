"""Lists of agents: length, indexing, slices, iteration, plus."""

from edsl import Agent, AgentList

agents = AgentList([Agent(name=f"p{i}", traits={"age": 20 + i}) for i in range(4)])
more = agents + AgentList([Agent(name="last", traits={"age": 99})])

value = [
    len(agents),
    agents[0].name,
    dict(agents[-1].traits),
    [agent.name for agent in agents[1:3]],
    [agent.traits["age"] for agent in agents],
    [agent.name for agent in more],
]
