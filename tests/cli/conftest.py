"""Commands in forks, for the tests that type many."""

from tests.cli.forked import forks

__all__ = ["forks"]
