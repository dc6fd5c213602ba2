"""Shuffled and drawn: which ones is chance, how many is not, and a seed repeats it."""

from edsl import AgentList

agents = AgentList.from_list("age", list(range(20, 30)))
ages = [[agent.traits["age"] for agent in agents.shuffle(seed="a")] for _ in range(2)]
drawn = [agent.traits["age"] for agent in agents.sample(4, seed="a")]

value = [sorted(ages[0]) == list(range(20, 30)), ages[0] == ages[1], len(drawn), len(set(drawn)), len(agents)]
