"""Names that belong to a hosted service can be imported."""

from edsl import Cache, Coop, Notebook

value = [callable(each) for each in (Cache, Coop, Notebook)]
