"""Takes results from a stream more slowly than they are made: PATH COUNT CHARS WINDOW PAUSE_S."""

import sys
import time
from pathlib import Path

from headrace import Results
from tests.trouble.programs.letters import letter, letters_job
from tests.trouble.programs.telling import resident_bytes, tell

path, count, chars, window, pause_s = sys.argv[1:]
job = letters_job(int(count), chars=int(chars), latency_s=0.001)
taken, furthest_ahead, resident = 0, 0, []
with_stream = job.stream(path, concurrency=int(window))
for result in with_stream:
    taken += 1
    number = result.scenario["number"]
    assert result.answer["letter"] == letter(number, int(chars))
    del result
    time.sleep(float(pause_s))  # this is the slow consumer: nothing waits for anything here
    with Results.open(Path(path)) as results:
        furthest_ahead = max(furthest_ahead, len(results) - taken)
    resident.append(resident_bytes())
early = max(resident[: len(resident) // 4])
tell(taken=taken, furthest_ahead=furthest_ahead, early_bytes=early, peak_bytes=max(resident))
