"""Shuffled and drawn: which ones is chance, how many is not, and a seed repeats it."""

from edsl import ScenarioList

scenarios = ScenarioList.from_list("n", list(range(10)))
orders = [[scenario["n"] for scenario in scenarios.shuffle(seed="a")] for _ in range(2)]
drawn = [scenario["n"] for scenario in scenarios.sample(4, seed="a")]

value = [sorted(orders[0]) == list(range(10)), orders[0] == orders[1], len(drawn), len(set(drawn)), len(scenarios)]
