"""How the commands write what they all write: a path that can be pasted, and JSON."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import msgspec


def seen_from_here(path: Path) -> str:
    """A path as one would type it in this directory."""
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


def print_json(value: Any, *, on_one_line: bool = False) -> None:
    encoded = msgspec.json.encode(value)
    print((encoded if on_one_line else msgspec.json.format(encoded)).decode(), flush=on_one_line)
