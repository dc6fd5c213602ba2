"""The commands about a run that goes on, here or elsewhere: `status`."""

from __future__ import annotations

from headrace.cli.options import Json, RunFileArgument


def status(path: RunFileArgument, json: Json = False) -> None:
    """How far a run is, also while it goes on elsewhere."""
    from headrace.cli.shown import show_status

    show_status(path, as_json=json)
