"""Programs in forks, for the tests that start many."""

from tests.trouble.forked_programs import forks

__all__ = ["forks"]
