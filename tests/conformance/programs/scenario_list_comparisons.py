"""Scenarios are compared with each other, two or more at a time."""

from edsl import ScenarioList

letters = ScenarioList.from_list("x", ["a", "b", "c"])
value = [
    [dict(pair) for pair in letters.create_comparisons()],
    [dict(pair) for pair in letters.create_comparisons(bidirectional=True, use_alphabet=True)],
    [dict(pair) for pair in letters.create_comparisons(num_options=3, option_prefix="o")],
    [dict(pair) for pair in letters.choose_k(2)],
    len(letters.choose_k(2, order_matters=True)),
]
