"""Asks the local model a question of every kind: `acceptance_run headrace|edsl ADDRESS TIMES DIRECTORY`.

Started by the Python that has the package. Prints, by kind, how many of TIMES answers were accepted, and how many calls
that took the model. Both sides ask the same agents with the same settings, each as `run()` does by itself: with the
instructions of its own prompts, its own repair, and as many tries as it gives an answer.
"""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks import workload
from benchmarks.every_kind import questions
from benchmarks.processes import print_figures

_SETTINGS = {"temperature": 0.7, "top_p": 0.95, "max_tokens": 256}


def main(package: str, address: str, times: int, directory: str) -> None:
    os.environ["OPENAI_COMPATIBLE_BASE_URL"] = f"{address}/v1"
    os.environ["OPENAI_COMPATIBLE_API_KEY"] = "none"
    api = importlib.import_module(package)
    ask = _ask_edsl if package == "edsl" else _ask_headrace
    agents = api.AgentList(list(workload.each_agent(api, times)))
    accepted: dict[str, int] = {}
    for question in questions(api):
        kind = question.question_name
        answers = ask(api, question.by(agents), f"{address}/v1", Path(directory) / f"{kind}.run")
        accepted[kind] = sum(answer is not None for answer in answers)
        print(f"{package}: {kind} {accepted[kind]} of {times}", file=sys.stderr, flush=True)
    print_figures(accepted=accepted)


def _ask_headrace(api: Any, job: Any, address: str, path: Path) -> list[Any]:
    model = api.Model("local", service_name="openai_compatible", base_url=address, **_SETTINGS)
    results = job.by(model).run(path, progress_bar=False)
    return [answer for result in results for answer in result.answer.values()]


def _ask_edsl(api: Any, job: Any, address: str, path: Path) -> list[Any]:
    model = api.Model("local", service_name="openai_compatible", **_SETTINGS)
    results = job.by(model).run(
        cache=api.Cache(),
        disable_remote_inference=True,
        disable_remote_cache=True,
        progress_bar=False,
        print_exceptions=False,
    )
    return [answer for result in results for answer in result["answer"].values()]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
