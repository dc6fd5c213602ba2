"""Finds the command that installs a package for this very Python, which may have no pip or be on no path."""

from __future__ import annotations

import shlex
import shutil
import sys
from importlib.util import find_spec


def install_command(*what: str) -> str:
    """What to type: `/path/to/python -m pip install pandas`, or what serves where there is no pip."""
    python, wanted = shlex.quote(sys.executable), shlex.join(what)
    if find_spec("pip") is not None:
        return f"{python} -m pip install {wanted}"
    if shutil.which("uv"):
        return f"uv pip install --python {python} {wanted}"
    if find_spec("ensurepip") is not None:
        return f"{python} -m ensurepip && {python} -m pip install {wanted}"
    return f"pip --python {python} install {wanted}"
