"""A survey being run: one interview, the executor in this process, the run loop, and the ways to start it."""
