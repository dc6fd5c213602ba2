"""Finds a program on the host where it is to run: its path, its environment, its directory.

An order for a program travels as it was written (workers.wire.SpawnProgram): another host has other paths and another
environment. Does not cover: starting it (workers.warden).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from msgspec import structs

from headrace.errors import InvalidInput
from headrace.workers.wire import SpawnProgram


def located(order: SpawnProgram) -> SpawnProgram:
    """The same order with everything that this host knows of it; raises InvalidInput where there is no such program."""
    surroundings = dict(os.environ) if order.environment is None else order.environment
    program = shutil.which(order.argv[0], path=surroundings.get("PATH"))
    if program is None:
        raise InvalidInput(f"There is no program {order.argv[0]!r}.", fix="Install it, or give its whole path.")
    return structs.replace(
        order,
        argv=[program, *order.argv[1:]],
        environment=surroundings,
        directory=str(Path(order.directory).absolute()),
    )
