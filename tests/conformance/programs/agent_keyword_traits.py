"""Traits as keyword arguments."""

from edsl import Agent

agent = Agent(name="Ada", age=36, city="Oslo")

value = [agent.name, dict(agent.traits), agent.city]
