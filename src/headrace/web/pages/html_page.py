"""What an HTML page is: an address, and a function that writes what is shown there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace.web.shown_files import ShownFiles


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """`show` blocks: it runs in a thread. It is given what the address has: its path's names and its query."""

    path: str
    show: Callable[[ShownFiles, dict[str, str]], str]
