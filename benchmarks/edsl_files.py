"""Studies that go to EDSL and back: EDSL writes, we run, EDSL reads, and the values are equal; and what that takes.

The memory of `to_edsl` and of the import is that of the whole process, on the run file of `million`: three questions,
five traits, 5 KB of prompts and responses each. The peer is EDSL itself, loading what we wrote, at a size it can do.
"""

import gzip
import os
import sys
import sysconfig
from pathlib import Path

from benchmarks import edsl
from benchmarks.bench import Bench
from benchmarks.peers import installed
from benchmarks.processes import ROOT, ChildFailed, Ended, run_child, run_python
from benchmarks.report import Line, Table, loops, megabytes

_MOST_BYTES = 150e6


def measure(bench: Bench) -> Table:
    size, peer_size = bench.sizes.exchanged
    directory = bench.directory / "edsl-files"
    directory.mkdir()
    python = installed(f"edsl=={edsl.VERSION}")
    lines, loops_ms = [], []
    if python is not None:
        lines += _round_trip(python, directory / "study", bench.sizes.exchanged_agents)
    written, imported = _large(directory, size)
    loops_ms += [written.figures["loop_ms"], imported.figures["loop_ms"]]
    peer = "" if python is None else _peer(python, directory, peer_size)
    lines += [
        _memory(f"to_edsl of {size:,} results, peak memory", written, peer),
        Line("the same, CPU", f"{written.figures['cpu_s'] / size * 1e6:.0f} us a result"),
        _memory(f"Results.from_edsl of {size:,} results, peak memory", imported, peer),
        Line("the same, CPU", f"{imported.figures['cpu_s'] / size * 1e6:.0f} us a result"),
    ]
    notes = ["the round trip compares answers, comments, traits, fields, models, prompts, generated texts and tokens"]
    return Table(f"EDSL's files, beside EDSL {edsl.VERSION}", lines, [*notes, loops(loops_ms)])


def _round_trip(python: Path, directory: Path, agents: int) -> list[Line]:
    """EDSL writes a study; we run its job, and import its results; EDSL reads what we write of both."""
    home = directory.with_name("home")
    home.mkdir()
    surroundings = edsl.surroundings(home) | {"GIT_CONFIG_GLOBAL": "/dev/null"}
    run_child("edsl_study", "write", directory, agents, python=python, env=surroundings)
    ran = run_child("edsl_exchange", "run", directory)
    run_child("edsl_exchange", "import", directory / "results.ep", directory / "theirs.run")
    run_child("edsl_exchange", "write", directory / "theirs.run", directory / "theirs.json.gz")
    lines = []
    for name, expected in (("ours", directory / "ours.jsonl"), ("theirs", directory / "values.jsonl.gz")):
        read = directory / f"{name}.read.jsonl"
        source = directory / f"{name}.json.gz"
        run_child("edsl_study", "read", source, read, python=python, env=surroundings)
        held = expected.read_bytes()
        same = read.read_bytes() == (gzip.decompress(held) if expected.suffix == ".gz" else held)
        what = "EDSL writes a job, we run it, EDSL reads" if name == "ours" else "EDSL's results here and back"
        lines.append(Line(what, f"{ran.figures['found']} results {'equal' if same else 'DIFFER'}", "equal", same))
    return [*lines, _objects(python, directory, surroundings)]


def _objects(python: Path, directory: Path, surroundings: dict[str, str]) -> Line:
    """Objects of EDSL, taken in its own process as they are."""
    ours = [str(ROOT / "src"), sysconfig.get_path("purelib")]
    env = surroundings | {"PYTHONPATH": os.pathsep.join(ours)}
    found = run_child("edsl_objects", directory, python=python, env=env).figures
    return Line("EDSL's objects, beside their files", f"{found['equal']} of {found['objects']} equal", "equal",
                found["equal"] == found["objects"])  # fmt: skip


def _large(directory: Path, size: int) -> tuple[Ended, Ended]:
    run_file, exported = directory / "large.run", directory / "large.json.gz"
    run_python("-m", "benchmarks.million", run_file, "--size", size)
    written = run_child("edsl_exchange", "write", run_file, exported)
    run_file.unlink()
    imported = run_child("edsl_exchange", "import", exported, directory / "again.run")
    assert written.figures["found"] == imported.figures["found"] == size
    exported.unlink()
    return written, imported


def _peer(python: Path, directory: Path, size: int) -> str:
    """EDSL loading what we write, of fewer results."""
    run_file, exported = directory / "small.run", directory / "small.json.gz"
    run_python("-m", "benchmarks.million", run_file, "--size", size)
    run_child("edsl_exchange", "write", run_file, exported)
    try:
        loaded = run_child("edsl_study", "load", exported, python=python, env=edsl.surroundings(directory / "home"))
    except ChildFailed as error:
        print(f"EDSL: {error}", file=sys.stderr)
        return "could not load it"
    grown = loaded.figures["peak_bytes"] - loaded.figures["began_bytes"]
    assert loaded.figures["found"] == size
    return f"{megabytes(loaded.figures['peak_bytes'])} to hold {size:,}, {grown / size / 1e3:.0f} KB each"


def _memory(name: str, ended: Ended, peer: str) -> Line:
    peak = ended.figures["peak_bytes"]
    return Line(name, megabytes(peak), f"<= {megabytes(_MOST_BYTES)}", peak <= _MOST_BYTES, peer)
