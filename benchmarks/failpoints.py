"""A thousand kills, each at a moment that changes the disk: nothing lost, doubled or stuck.

Run files, engine files and the response cache, at every write, sync, truncation and deletion of SQLite's, so inside
every commit, checkpoint and change of journal mode, and at every rename, link and unlink of ours.
"""

import itertools
from collections import Counter

from benchmarks.bench import Bench
from benchmarks.children.kill_scenarios import SCENARIOS
from benchmarks.kill_storm import prepared, storm
from benchmarks.processes import ChildFailed
from benchmarks.report import Line, Table


def measure(bench: Bench) -> Table:
    places = {name: bench.directory / f"storm-{number}" for number, name in enumerate(SCENARIOS)}
    moments = {name: len(prepared(name, place)) + 1 for name, place in places.items()}
    every = [(name, moment) for name, count in moments.items() for moment in range(count)]
    # Round and round: what else happens at a moment differs each time.
    chosen = itertools.islice(itertools.cycle(every), max(bench.sizes.failpoint_kills, len(every)))
    kills, troubled, first = Counter[str](), Counter[str](), ""
    for kill in storm(chosen, places):
        kills[kill.scenario] += 1
        if kill.trouble:
            troubled[kill.scenario] += 1
            first = first or f"{kill.scenario}, moment {kill.moment}: {kill.trouble}"
    if first:
        raise ChildFailed(f"{troubled.total()} of {kills.total()} kills cost something: {dict(troubled)}\n{first}")
    lines = [
        Line(f"{name}: {moments[name]} moments", f"{kills[name]} kills", "nothing lost, doubled or stuck", True)
        for name in SCENARIOS
    ]
    return Table("kills at every moment that changes the disk", [Line("kills in all", f"{kills.total():,}"), *lines])
