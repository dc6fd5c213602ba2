"""Which code of ours a process runs: two that talk over a wire must run the same.

Does not cover: the program's own modules. A function that is missing on a node is reported where it is looked for.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


@cache
def code_version() -> str:
    """A digest of every module of this package, by name and content."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
