"""Interviews in worker processes: the executor contract once more."""
