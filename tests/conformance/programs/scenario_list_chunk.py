"""A text is cut into parts of words or lines, which are numbered and measured."""

from edsl import Scenario, ScenarioList

texts = ScenarioList([Scenario({"t": "one two three\nfour five", "n": 1})])
value = [
    [dict(part) for part in texts.chunk("t", num_words=2)],
    [dict(part) for part in texts.chunk("t", num_lines=1, include_original=True)],
    [part["t_original"] for part in texts.chunk("t", num_words=9, include_original=True, hash_original=True)],
]
