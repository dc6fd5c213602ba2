"""A model's name tells its service."""

from edsl import Model

names = ["gpt-4o", "claude-3-5-sonnet-20240620", "gemini-1.5-flash"]

value = [Model(name).model for name in names]
