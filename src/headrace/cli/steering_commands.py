"""The commands that watch and steer a run in another process: `status`, `pause`, `tune`, `stop`.

Does not cover: `resume`, which may have to run the job itself (cli.job_commands), or what is printed
(cli.status).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import Json, RunFileArgument


def status(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="A run file or an engine's file.")],
    watch: Annotated[bool, typer.Option("--watch", help="Look again every second until the run ends.")] = False,
    json: Json = False,
) -> None:
    """How far a run is, also while it goes on elsewhere."""
    from headrace.cli.status.engine_status import show_engine_status, watch_engine_status
    from headrace.cli.status.run_status import show_status, watch_status
    from headrace.store.engine_file.engine_overview import is_engine_file

    if is_engine_file(path.expanduser()):
        show_engine = watch_engine_status if watch else show_engine_status
        show_engine(path.expanduser(), as_json=json)
    elif watch:
        watch_status(path, as_json=json)
    else:
        show_status(path, as_json=json)


def pause(path: RunFileArgument, json: Json = False) -> None:
    """Have a run start nothing more and wait; what is in flight ends. `headrace resume` lets it go on."""
    from headrace.cli.status.run_status import tell_run
    from headrace.interviews.steering.messages import PauseRequest

    tell_run(path, PauseRequest(), as_json=json)


def tune(
    path: RunFileArgument,
    concurrency: Annotated[int, typer.Option(min=1, max=10**9, help="How many interviews may be in flight.")],
    json: Json = False,
) -> None:
    """Change how many interviews a run has in flight, while it goes on."""
    from headrace.cli.status.run_status import tell_run
    from headrace.interviews.steering.messages import TuneRequest

    tell_run(path, TuneRequest(concurrency), as_json=json)


def stop(path: RunFileArgument, json: Json = False) -> None:
    """Stop a run, as Ctrl-C does where it was started. What is in flight ends; twice: stop now. Both can be resumed."""
    from headrace.cli.status.run_status import tell_run
    from headrace.interviews.steering.messages import StopRequest

    tell_run(path, StopRequest(), as_json=json)
