"""Forms that were sent: one that a browser sends again, when its page is loaded anew, is not carried out twice."""

from __future__ import annotations

import re
import secrets
from collections.abc import Generator
from contextlib import contextmanager

from headrace.errors import HeadraceError

_MOST = 1_000
_NUMBER = re.compile(r"[0-9a-f]{16}")


class FormSentTwice(HeadraceError):
    """This form was carried out already."""

    def __init__(self) -> None:
        super().__init__(
            "This form was sent already, and is not carried out again.", fix="Look how the run stands now."
        )


def new_number() -> str:
    """A random number for a form that is shown: sent twice, the form is carried out once."""
    return secrets.token_hex(8)


class SentForms:
    """The numbers of the latest forms, oldest first."""

    def __init__(self) -> None:
        self._numbers: dict[str, None] = {}

    @contextmanager
    def sent(self, number: str) -> Generator[None]:
        """Carry out the form with this number, or one that has none of ours. One that fails can be sent again."""
        if number in self._numbers:
            raise FormSentTwice
        if _NUMBER.fullmatch(number):
            self._numbers[number] = None
        if len(self._numbers) > _MOST:
            del self._numbers[next(iter(self._numbers))]
        try:
            yield
        except HeadraceError:
            self._numbers.pop(number, None)
            raise
