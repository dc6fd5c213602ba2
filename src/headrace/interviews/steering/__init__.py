"""Pause, tune and stop a run from another terminal, through a socket beside its run file."""
