"""What an HTML page is: an address, and a function that writes what is shown there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace.web.operations import Method
from headrace.web.shown_files import ShownFiles


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """`show` blocks: it runs in a thread. It is given what the address has, its path's names and its query, the fields
    of a form that was sent, and as `proof` what a form must hold to steer: empty where nothing may be steered. A page
    that `steers` is not there then. `once` is a new number for a form: one with the same is carried out once.
    """

    path: str
    show: Callable[[ShownFiles, dict[str, str]], str]
    method: Method = Method.GET
    steers: bool = False
