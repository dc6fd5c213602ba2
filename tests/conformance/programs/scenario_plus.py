"""Two scenarios joined into one, a field renamed."""

from edsl import Scenario

a = Scenario({"city": "Oslo"}) + Scenario({"food": "fish"})

value = [dict(a), a["food"], dict(a.rename({"city": "town"})), "city" in a]
