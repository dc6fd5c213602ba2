"""Makes a run file of a plan of 10^9 with many rows, or opens it: `long_file make|open PATH ROWS`.

Made cheaply: the first rows are journaled as by a run, the rest is one INSERT ... SELECT without details, with the
counters put right; then it is opened once, which writes its blocks of rows, as for a file of an older Headrace.
"""

import sys
import time
from contextlib import closing
from pathlib import Path

import apsw

from benchmarks.processes import loop_ms, peak_resident_bytes, print_figures
from headrace import Agent, AgentList, Job, Model, QuestionFreeText, ScenarioList
from headrace.limits import RunOptions
from headrace.memory.measure.process import own_resident_bytes
from headrace.store.run_file.checksums import CHECK, counters_checksum
from headrace.store.run_file.run_file import RunFile

_AGENTS, _SCENARIOS = 100_000, 10_000


def job() -> Job:
    ask = QuestionFreeText(question_name="q", question_text="Is {{ agent.i }} in {{ scenario.k }}?")
    people = AgentList(Agent({"i": number}) for number in range(_AGENTS))
    places = ScenarioList({"k": number} for number in range(_SCENARIOS))
    return ask.by(people).by(places).by(Model("test", canned_response="yes"))


def opened(path: Path, asked: Job) -> RunFile:
    return RunFile.open(path, asked, RunOptions(), lambda: None, budget_bytes=512_000_000)


def make(path: Path, rows: int) -> None:
    opened(path, job()).close()
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF;").fetchall()
        connection.execute("BEGIN")
        connection.execute(
            "WITH RECURSIVE n(o) AS (SELECT 0 UNION ALL SELECT o + 1 FROM n WHERE o + 1 < ?)"
            " INSERT INTO interviews SELECT o, 0, o / ?, o % ?, 0, 0, 'yes', NULL, NULL FROM n",
            (rows, _SCENARIOS, _SCENARIOS),
        )
        counters = {**dict(connection.execute("SELECT name, value FROM counters")), "done": rows}
        counters[CHECK] = counters_checksum(counters)
        connection.executemany("UPDATE counters SET value = ? WHERE name = ?", [(v, k) for k, v in counters.items()])
        connection.execute("COMMIT")
    time_to_open(path, rows)


def time_to_open(path: Path, rows: int) -> None:
    asked = job()
    before_bytes, began_s, cpu_before_s = own_resident_bytes(), time.perf_counter(), time.process_time()
    file = opened(path, asked)
    wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_before_s
    assert file.stored.count == file.done.count == rows
    assert file.done.next_gap(0) == rows
    held = own_resident_bytes() - before_bytes
    file.close()
    print_figures(
        wall_s=wall_s,
        cpu_s=cpu_s,
        held_bytes=held,
        set_bytes=file.stored.held_bytes + file.done.held_bytes,
        file_bytes=path.stat().st_size,
        peak_bytes=peak_resident_bytes(),
        loop_ms=loop_ms(),
    )


if __name__ == "__main__":
    {"make": make, "open": time_to_open}[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
