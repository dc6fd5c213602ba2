"""One interview of forty takes more memory than a worker of a node may: PATH ADDRESS."""

import logging
import sys

from headrace import Ray
from tests.interviews.workers.survey_jobs import job_of
from tests.trouble.programs.telling import outcome_of, tell

if __name__ == "__main__":
    path, address = sys.argv[1:]
    logging.getLogger("headrace").addHandler(logging.NullHandler())
    ray = Ray(address, slots_per_node=2, slot_memory="120MB")
    job = job_of({7: "eat:1000000000"}, people=40)
    tell(**outcome_of(lambda: job.run(path, executor=ray, memory="+600MB", concurrency=8).close()))
