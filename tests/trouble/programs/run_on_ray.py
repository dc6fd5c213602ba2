"""Adds up what a server answers, on a Ray cluster: PATH URL AGENTS WINDOW ADDRESS [SLOTS]."""

import logging
import sys

from headrace import Ray
from tests.trouble.programs.run_numbers import numbers_job
from tests.trouble.programs.telling import outcome_of, tell

if __name__ == "__main__":
    path, url, agents, window, address, *slots = sys.argv[1:]
    logging.getLogger("headrace").addHandler(logging.NullHandler())  # what it says of lost nodes is no complaint
    ray = Ray(address, slots_per_node=int(slots[0]) if slots else None)
    job = numbers_job(url, int(agents), is_chain=True)
    tell(started=True)
    tell(**outcome_of(lambda: job.run(path, executor=ray, concurrency=int(window), cache=False).close()))
