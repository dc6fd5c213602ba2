"""Services that models are reached through."""

from edsl import Model

services = [str(service) for scenario in Model.services() for service in dict(scenario).values()]

value = [name in services for name in ("openai", "anthropic", "google", "groq", "mistral")]
