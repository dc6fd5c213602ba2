"""The ways to name a model; its parameters are attributes."""

from edsl import Model

a = Model("test", temperature=0.7)
b = Model(model_name="test", temperature=0.7)

value = [a.model, b.model, a.temperature, a.parameters["temperature"]]
