"""The commands about a run that goes on, here or elsewhere: `status`."""

from __future__ import annotations

from headrace.cli.app import Json, RunFileArgument, app


@app.command()
def status(path: RunFileArgument, json: Json = False) -> None:
    """How far a run is, also while it goes on elsewhere."""
    from headrace.cli.shown import show_status

    show_status(path, as_json=json)
