"""Runs the survey about towns: PATH AGENTS LATENCY_S CONCURRENCY [LIMIT].

Where GATE names a file, whoever listens to results holds on to the first until that file is there. WORKERS is how many
processes conduct the interviews; by default this one does.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

from tests.trouble.programs.telling import outcome_of, tell
from tests.trouble.programs.town import town_job


def wait_at_gate(_: object) -> None:
    while not Path(os.environ["GATE"]).exists():
        time.sleep(0.01)


path, agents, latency_s, concurrency, *limit = sys.argv[1:]
job = town_job(int(agents), float(latency_s))
options: dict[str, Any] = {"concurrency": int(concurrency), "workers": int(os.environ.get("WORKERS", "0"))}
if limit:
    options["limit"] = int(limit[0])
if "GATE" in os.environ:
    options["on_result"] = wait_at_gate
tell(started=True)
tell(**outcome_of(lambda: job.run(path, **options).close()))
