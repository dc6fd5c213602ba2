"""What EDSL's users write that has no effect here: said once, as a warning.

Covers: the warning. Does not cover: names that are errors (headrace.errors.nearest suggests another).
"""

from __future__ import annotations

import warnings

from headrace.errors import HeadraceWarning

_said: set[str] = set()


def warn_once(text: str) -> None:
    """Warn with this text, once in this process; `warnings` itself counts once per line of the program."""
    if text not in _said:
        _said.add(text)
        warnings.warn(text, HeadraceWarning, stacklevel=_outside())


def _outside() -> int:
    """The number of frames from here to the program's own line, which the warning should name."""
    import sys

    frame, level = sys._getframe(2), 2  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "headrace":
        frame, level = frame.f_back, level + 1
    return level
