"""Forms that were sent: one that a browser sends again, when its page is loaded anew, is not carried out twice."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from headrace.errors import HeadraceError

_MOST = 1_000


class FormSentTwice(HeadraceError):
    """This form was carried out already."""

    def __init__(self) -> None:
        super().__init__(
            "This form was sent already, and is not carried out again.", fix="Look how the run stands now."
        )


class SentForms:
    """The numbers of the latest forms, oldest first."""

    def __init__(self) -> None:
        self._numbers: dict[str, None] = {}

    @contextmanager
    def sent(self, number: str) -> Generator[None]:
        """Carry out the form with this number, none where it has none. One that fails can be sent again."""
        if number in self._numbers:
            raise FormSentTwice
        if number:
            self._numbers[number] = None
        if len(self._numbers) > _MOST:
            del self._numbers[next(iter(self._numbers))]
        try:
            yield
        except HeadraceError:
            self._numbers.pop(number, None)
            raise
