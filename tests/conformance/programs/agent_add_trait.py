"""A trait added later."""

from edsl import Agent

agent = Agent(traits={"age": 36})
older = agent.add_trait("city", "Oslo")

value = [dict(older.traits), older.city]
