"""Our side of the exchange with EDSL: `edsl_exchange run|write|import ARGUMENTS`, each with its figures at the end.

run DIRECTORY           the job that EDSL wrote, run here, and its results written for EDSL; ours in ours.jsonl
write RUN FILE          the results of a run file, written for EDSL
import FILE RUN         results that EDSL reads, made into a run file
"""

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from benchmarks.processes import loop_ms, peak_resident_bytes, print_figures
from headrace import Job, Results
from headrace.errors import NotCarriedOver


def run(directory: Path) -> int:
    results = Job.from_edsl(directory / "job.json.gz").run(directory / "ours.run", n=2, progress_bar=False)
    results.to_edsl(directory / "ours.json.gz")
    with (directory / "ours.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in values(results))
    return len(results)


def values(results: Results) -> list[str]:
    """What both sides must agree about, as `edsl_study` writes it of EDSL's results."""
    return sorted(json.dumps(of_one(result), sort_keys=True, ensure_ascii=False) for result in results)


def of_one(result: Any) -> dict[str, Any]:
    raw = result["raw_model_response"]
    counts = ("_input_tokens", "_output_tokens")
    return {
        "agent": {"name": result.agent.name, "traits": result.agent.traits},
        "scenario": result.scenario,
        "model": [result.model.name, result.model.parameters.get("temperature")],
        "iteration": result.iteration,
        "answer": result.answer,
        "comment": {name: text for name, text in result["comment"].items() if text},
        "prompt": {name: text for name, text in result["prompt"].items() if text is not None},
        "tokens": {name: raw[name] for name in sorted(raw) if name.endswith(counts) and raw[name] is not None},
        "generated": {name: text for name, text in result["generated_tokens"].items() if text is not None},
    }


def write(run_file: Path, target: Path) -> int:
    results = Results.open(run_file)
    results.to_edsl(target)
    return len(results)


def import_results(source: Path, target: Path) -> int:
    return len(Results.from_edsl(source, target))


def main() -> None:
    what, *paths = sys.argv[1:]
    began_s = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCarriedOver)
        found = {"run": run, "write": write, "import": import_results}[what](*map(Path, paths))
    cpu_s = time.process_time() - began_s
    print_figures(found=found, cpu_s=cpu_s, peak_bytes=peak_resident_bytes(), loop_ms=loop_ms())


if __name__ == "__main__":
    main()
