"""JSON read one value at a time, out of a file of any length, in the memory of its largest value.

    stream = JsonStream(file, "study.json.gz")
    for name in stream.members():          # of the object that the file is
        for item in stream.items(): ...    # of an array; or stream.value() for all of it; what is not read is skipped

Python's own decoder does the work: it takes the text from a place on and says where the value ended, so a value that is
cut off at the end of the buffer is read again with more text behind it. It also reads NaN, which EDSL writes.
Does not cover: what the values mean (survey_reading and its like).
"""

from __future__ import annotations

import codecs
import json
import re
import zlib
from collections.abc import Iterator
from typing import IO, Any

from headrace.errors import EdslFileError

LARGEST_VALUE = 64_000_000  # letters of one value; a picture in a scenario is one
_BLOCK = 1 << 18
_BLANKS = re.compile(r"[ \t\r\n]*+")
_decode = json.JSONDecoder().raw_decode


class JsonStream:
    """`place` is what errors name."""

    def __init__(self, file: IO[bytes], place: str) -> None:
        self._file, self._decoder = file, codecs.getincrementaldecoder("utf-8-sig")()
        self._place = place
        self._text, self._at = "", 0
        self._is_read = True  # the value behind the last name or item that was given

    def members(self) -> Iterator[str]:
        """The names in an object; each one's value is read by the caller, or skipped."""
        if self._next() != "{":
            raise self._wrong("it is no JSON object")
        self._at += 1
        self._is_read = True
        if self._next() == "}":
            self._at += 1
            return
        while True:
            name = self.value()
            if not isinstance(name, str):
                raise self._wrong("a name in it is no text")
            self._expect(":")
            self._is_read = False
            yield name
            if not self._is_read:
                self.skip()
            self._is_read = True
            if not self._goes_on("}"):
                return

    def is_at_array(self) -> bool:
        """Whether the value that comes next is an array."""
        return self._next() == "["

    def items(self) -> Iterator[Any]:
        """The items of an array, one at a time."""
        self._is_read = True
        self._expect("[")
        if self._next() == "]":
            self._at += 1
            return
        while True:
            yield self.value()
            if not self._goes_on("]"):
                return

    def value(self) -> Any:
        """A whole value."""
        self._is_read = True
        self._next()
        while True:
            try:
                value, end = _decode(self._text, self._at)
            except json.JSONDecodeError:
                if not self._fill():
                    raise self._wrong("it is not valid JSON") from None
            except RecursionError:
                raise self._wrong("it is nested too deeply") from None
            except ValueError:
                raise self._wrong("a number in it is too long") from None
            else:
                # A number at the end of the buffer may go on behind it.
                if end < len(self._text) or not self._fill():
                    self._at = end
                    return value

    def skip(self) -> None:
        """Pass over a value: the members of an object and the items of an array one by one, in little memory."""
        match self._next():
            case "{":
                for _ in self.members():
                    self.value()
            case "[":
                for _ in self.items():
                    pass
            case _:
                self.value()
        self._is_read = True

    def end(self) -> None:
        """Refuse anything behind the value that was read."""
        if self._next(is_at_end=True):
            raise self._wrong("there is something behind its end")

    def _goes_on(self, closing: str) -> bool:
        letter = self._next()
        if letter not in (",", closing):
            raise self._wrong(f"there is no comma before {letter!r}")
        self._at += 1
        return letter == ","

    def _expect(self, letter: str) -> None:
        if self._next() != letter:
            raise self._wrong(f"there is no {letter!r} where one has to be")
        self._at += 1

    def _next(self, *, is_at_end: bool = False) -> str:
        """The next letter that is not blank; it stays unread."""
        passed = 0
        while True:
            start, self._at = self._at, _end_of_blanks(self._text, self._at)
            if self._at < len(self._text):
                return self._text[self._at]
            passed += self._at - start
            if passed > LARGEST_VALUE:
                raise self._wrong("it is blank for millions of letters")
            if not self._fill():
                if is_at_end:
                    return ""
                raise self._wrong("it ends too early")

    def _fill(self) -> bool:
        """Read more text behind what is not read yet, as much again at least; False at the end of the file."""
        rest = self._text[self._at :]
        if len(rest) > LARGEST_VALUE:
            raise self._wrong(f"one value in it has more than {LARGEST_VALUE:,} letters")
        try:
            read = self._file.read(max(_BLOCK, len(rest)))
            more = self._decoder.decode(read, final=not read)
        except UnicodeDecodeError:
            raise self._wrong("it is not UTF-8 text") from None
        except (EOFError, zlib.error):
            raise self._wrong("it is not a whole gzip file") from None
        except OSError as error:
            raise self._wrong(error.strerror or str(error)) from None
        self._text, self._at = rest + more, 0
        return bool(read)

    def _wrong(self, what: str) -> EdslFileError:
        return EdslFileError(f"{self._place} cannot be read: {what}.", fix="Save it again in EDSL.")


def _end_of_blanks(text: str, start: int) -> int:
    found = _BLANKS.match(text, start)
    return found.end() if found else start
