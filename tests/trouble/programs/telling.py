"""How the programs here talk to the test that started them: lines of JSON. Importing it makes Ctrl-C work.

A shell that starts tests in the background has SIGINT ignored, and children inherit that.
"""

import faulthandler
import json
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

signal.signal(signal.SIGINT, signal.default_int_handler)
faulthandler.enable()


def tell(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


def outcome_of(action: Callable[[], Any]) -> dict[str, Any]:
    """How a call ended: the name of its error, or None, what it said, and what kinds of error it counts as."""
    try:
        action()
    except BaseException as error:  # noqa: BLE001 - told to the test, which judges it
        kinds = [kind.__name__ for kind in type(error).__mro__]
        return {"error": type(error).__name__, "message": str(error), "kinds": kinds}
    return {"error": None, "message": "", "kinds": []}


def peak_bytes() -> int:
    """The highest resident memory of this program. (getrusage would count the process that started it, too.)"""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1]) * 1024


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_bytes().split()[1]) * resource.getpagesize()
