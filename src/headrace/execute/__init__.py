"""Where work runs: one interview at a time, by one contract for this process, worker processes and clusters."""
