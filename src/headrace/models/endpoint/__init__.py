"""Decides whether a call may go to a model's endpoint: concurrency, rates, pauses, breaker, retries. Pure."""
