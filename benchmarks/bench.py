"""What the measures share: the sizes, a place for files, and runs that several of them look at."""

import functools
from dataclasses import dataclass
from pathlib import Path

from benchmarks import edsl
from benchmarks.processes import Ended, run_child


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Numbers of interviews, unless the name says otherwise."""

    small_run: int
    large_run: int
    speed_from: int
    speed_to: int
    speed_repeats: int
    growth_early: tuple[int, int]
    growth_late: tuple[int, int]
    edsl: int
    kills: int
    killed_run: int
    imports: int
    calls: int
    call_repeats: int
    services_from: int
    services_to: int
    service_repeats: int
    services_memory: tuple[int, int]
    killed_calls: int
    storm_s: float
    agent_runs: int
    mixed_agents: int
    mixed_interviews: int
    swelling_agents: int
    slow_peers: bool
    overshoot_repeats: int
    worker_interviews: int
    worker_repeats: int
    failpoint_kills: int
    asked_times: int
    language: tuple[int, int]
    exchanged: tuple[int, int]  # results written for EDSL, and those that EDSL loads
    exchanged_agents: int
    listed: int  # rows of a file
    pictures: int
    peer_pictures: int
    page_run: int
    page_clicks: int
    page_click_minutes: float
    live_run: int
    live_repeats: int
    fed_rows: int
    long_file: int  # rows
    scheduled_runs: int
    scheduled_rounds: int


FULL = Sizes(
    small_run=10_000,
    large_run=1_000_000,
    speed_from=20_000,
    speed_to=120_000,
    speed_repeats=3,
    growth_early=(10_000, 100_000),
    growth_late=(500_000, 1_000_000),
    edsl=1_000,
    kills=10,
    killed_run=20_000,
    imports=15,
    calls=6_000,
    call_repeats=5,
    services_from=2_000,
    services_to=8_000,
    service_repeats=3,
    services_memory=(10_000, 200_000),
    killed_calls=16_000,
    storm_s=30.0,
    agent_runs=10_000,
    mixed_agents=24,
    mixed_interviews=100_000,
    swelling_agents=8,
    slow_peers=True,
    overshoot_repeats=5,
    worker_interviews=200_000,
    worker_repeats=3,
    failpoint_kills=1_000,
    asked_times=5,
    language=(1_000, 6_000),
    exchanged=(200_000, 5_000),
    exchanged_agents=20,
    listed=5_000_000,
    pictures=10_000,
    peer_pictures=1_000,
    page_run=1_000_000,
    page_clicks=2_000,
    page_click_minutes=60,
    live_run=200_000,
    live_repeats=5,
    fed_rows=400_000,
    long_file=100_000_000,
    scheduled_runs=100_000,
    scheduled_rounds=200,
)
QUICK = Sizes(
    small_run=2_000,
    large_run=20_000,
    speed_from=2_000,
    speed_to=22_000,
    speed_repeats=1,
    growth_early=(2_000, 12_000),
    growth_late=(20_000, 40_000),
    edsl=200,
    kills=3,
    killed_run=6_000,
    imports=5,
    calls=1_000,
    call_repeats=1,
    services_from=1_000,
    services_to=5_000,
    service_repeats=1,
    services_memory=(5_000, 15_000),
    killed_calls=8_000,
    storm_s=5.0,
    agent_runs=2_000,
    mixed_agents=8,
    mixed_interviews=10_000,
    swelling_agents=4,
    slow_peers=False,
    overshoot_repeats=1,
    worker_interviews=20_000,
    worker_repeats=1,
    failpoint_kills=100,
    asked_times=2,
    language=(200, 1_200),
    exchanged=(5_000, 500),
    exchanged_agents=3,
    listed=20_000,
    pictures=500,
    peer_pictures=500,
    page_run=50_000,
    page_clicks=300,
    page_click_minutes=1,
    live_run=60_000,
    live_repeats=1,
    fed_rows=40_000,
    long_file=3_000_000,
    scheduled_runs=20_000,
    scheduled_rounds=20,
)


class Bench:
    def __init__(self, sizes: Sizes, directory: Path) -> None:
        self.sizes = sizes
        self.directory = directory
        # Several measures look at the same run of a million: it is made once.
        self.run_once = functools.cache(self.run)
        self.edsl = functools.cache(self._edsl)

    def run(self, interviews: int) -> tuple[Ended, Path]:
        """A whole run of the workload in a process of its own, and the run file it left."""
        path = self.directory / f"{interviews}.run"
        path.unlink(missing_ok=True)
        return run_child("whole_run", path, interviews), path

    def _edsl(self, interviews: int, *, keeps: bool = True, has_names: bool = True) -> edsl.Peer | None:
        return edsl.measure(interviews, self.directory, keeps=keeps, has_names=has_names)
