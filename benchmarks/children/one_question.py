"""Asks one question of one agent, from `run` to the answer, several times: `one_question DIRECTORY`."""

import statistics
import sys
import time
from pathlib import Path

from benchmarks.processes import print_figures
from headrace import Agent, Model, QuestionFreeText, Survey

_LATER_RUNS = 10


def main(directory: Path) -> None:
    times_ms = [_run_ms(directory / f"one-{number}.run") for number in range(_LATER_RUNS + 1)]
    print_figures(first_ms=times_ms[0], median_ms=statistics.median(times_ms[1:]))


def _run_ms(path: Path) -> float:
    began_s = time.perf_counter()
    question = QuestionFreeText(question_name="why", question_text="Why, {{ agent.work }}?")
    job = Survey([question]).by(Agent(traits={"work": "nurse"})).by(Model("test", canned_response="Because."))
    results = job.run(path)
    assert results[0].answer["why"] == "Because."
    return (time.perf_counter() - began_s) * 1000


if __name__ == "__main__":
    main(Path(sys.argv[1]))
