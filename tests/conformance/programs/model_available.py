"""Models that are known, and those of one service."""

from edsl import Model

names = [model.model for model in Model.available(service_name="test", local_only=True)]

value = names
