"""Objects of the real EDSL given to Headrace in one process: `edsl_objects DIRECTORY`, where EDSL has saved them.

Started by EDSL's own Python, with Headrace and its libraries on its path. Prints how many objects gave the same as
their files.
"""

import sys
from pathlib import Path
from typing import Any

from benchmarks.children import edsl_study
from benchmarks.processes import print_figures
from headrace import Agent, AgentList, Job, Model, ModelList, Scenario, ScenarioList, Survey


def main(directory: Path) -> None:
    agents, scenarios, models = edsl_study.agents(2), edsl_study.scenarios(), edsl_study.models()
    job = edsl_study.survey().by(agents).by(scenarios).by(models)
    saved: dict[str, Any] = {
        name: kind.from_edsl(directory / f"{name}.json.gz")
        for name, kind in {"survey": Survey, "job": Job, "every_kind": Survey}.items()
    }
    pairs = [
        (Survey.from_edsl(edsl_study.survey()).to_dict(), saved["survey"].to_dict()),
        (Survey.from_edsl(edsl_study.every_kind()).to_dict(), saved["every_kind"].to_dict()),
        (Job.from_edsl(job).models, saved["job"].models),
        (AgentList.from_edsl(agents)[1], saved["job"].agents[1]),
        (Agent.from_edsl(agents[0]), saved["job"].agents[0]),
        (ScenarioList.from_edsl(scenarios)[1], saved["job"].scenarios[1]),
        (Scenario.from_edsl(scenarios[0]), saved["job"].scenarios[0]),
        (ModelList.from_edsl(models), saved["job"].models),
        (Model.from_edsl(models[0]), saved["job"].models[0]),
    ]
    print_figures(objects=len(pairs), equal=sum(ours == theirs for ours, theirs in pairs))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
