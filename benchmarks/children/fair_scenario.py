"""One scenario of benchmarks.fairness: `fair_scenario NAME engine|pool DIRECTORY URL full|quick`. Prints its waits."""

import asyncio
import sys
from pathlib import Path

import headrace
from benchmarks.children import fair_calls, fair_conversations, fair_growth, fair_starts
from benchmarks.children.fair_stage import Scenario, Stage
from benchmarks.processes import print_figures

SCENARIOS: dict[str, Scenario] = (
    fair_conversations.SCENARIOS | fair_calls.SCENARIOS | fair_starts.SCENARIOS | fair_growth.SCENARIOS
)


def main(name: str, side: str, directory: str, url: str, size: str) -> None:
    stage = Stage(directory=Path(directory), url=url, is_quick=size == "quick")
    scenario = SCENARIOS[name]
    waits = asyncio.run((scenario.with_engine if side == "engine" else scenario.with_pool)(stage))
    print_figures(waits=waits, source=str(Path(headrace.__file__).parents[2]))


if __name__ == "__main__":
    main(*sys.argv[1:])
