"""Agent runs in worker processes: the executor contract once more."""
