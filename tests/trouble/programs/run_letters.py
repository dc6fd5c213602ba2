"""Runs the letters: PATH COUNT CHARS LATENCY_S CONCURRENCY."""

import sys

from tests.trouble.programs.letters import letters_job
from tests.trouble.programs.telling import outcome_of, tell

path, count, chars, latency_s, concurrency = sys.argv[1:]
job = letters_job(int(count), chars=int(chars), latency_s=float(latency_s))
tell(started=True)
tell(**outcome_of(lambda: job.run(path, concurrency=int(concurrency)).close()))
