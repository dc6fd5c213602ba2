"""What an EDSL file holds that has no counterpart here: noted while it is read, and told once, as a whole.

Does not cover: what cannot be run at all, which is an error where it is met.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager

from headrace.edsl_names import warn
from headrace.errors import EdslFileError, InvalidInput, NotCarriedOver

KNOWN_VERSION = (1, 0, 9)
_MOST_NOTES = 100  # of a file with thousands of odd parts, the first are enough to know it by


class CarriedOver:
    """The notes of one object or file. `place` is what they are about, as users know it: a path, or a class of EDSL."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._notes: dict[str, int] = {}  # with how often each was met; at most _MOST_NOTES
        self._version: str | None = None

    def note(self, text: str) -> None:
        """Note one part that is not carried over; what is met again is counted."""
        if text in self._notes or len(self._notes) < _MOST_NOTES:
            self._notes[text] = self._notes.get(text, 0) + 1

    def see_version(self, version: object) -> None:
        """Remember which EDSL wrote the file, to say so where it is newer than the one that is known here."""
        if isinstance(version, str) and self._version is None:
            self._version = version[:40]

    @property
    def notes(self) -> tuple[str, ...]:
        found = [text if times == 1 else f"{text} ({times:,} times)" for text, times in self._notes.items()]
        if self._version is not None and is_newer(self._version) and found:
            known = ".".join(map(str, KNOWN_VERSION))
            found.insert(0, f"EDSL {self._version} wrote it, and formats are known here up to {known}")
        return tuple(found)

    def warn(self) -> None:
        """Warn of all that is not carried over, if anything is."""
        if notes := self.notes:
            lines = "".join(f"\n- {note}" for note in notes)
            warn(NotCarriedOver(f"{self.place}: not carried over:{lines}", notes=notes))


@contextmanager
def as_edsl_errors(notes: CarriedOver) -> Generator[None]:
    """Name the file in the errors of a block that reads it; what EDSL never writes is such an error too."""
    try:
        yield
    except EdslFileError:
        raise
    except InvalidInput as error:
        raise EdslFileError(f"{notes.place}: {error.message}", fix=error.fix) from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        said = f"{notes.place} is not what EDSL writes: {type(error).__name__}: {error}."
        raise EdslFileError(said, fix="Save it again in EDSL.") from error


def is_newer(version: str) -> bool:
    """Whether a version of EDSL comes after the one whose formats are known here."""
    numbers = tuple(int(number) for number in re.findall(r"\d{1,9}", version)[:3])
    return numbers > KNOWN_VERSION
