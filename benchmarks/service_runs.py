"""One run of `benchmarks.children.services` against a model server: the rows it reads, its run file, its cache."""

import json

from benchmarks.bench import Bench
from benchmarks.model_server import ModelServer
from benchmarks.processes import Ended, run_child


def run_service(
    bench: Bench, server: ModelServer, way: str, rows: int, in_flight: int, *, keeps_cache: bool = False
) -> Ended:
    """One whole program; without an earlier one's cache, unless it is kept."""
    data, path, home = (bench.directory / name for name in (f"{rows}.jsonl", f"{way}.run", "home"))
    path.unlink(missing_ok=True)
    if not keeps_cache:
        for file in home.glob("cache*"):
            file.unlink()
    if not data.exists():
        with data.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps({"number": number}) + "\n" for number in range(rows))
    return run_child("services", way, server.url, data, in_flight, path, env={"HEADRACE_HOME": str(home)})
