"""Takes every key that this process has sent out of what services say, before it is stored, shown or raised.

By value: the key itself, a long beginning or end of it (a service may cut it short), in capitals or small letters, and
in the encodings a service may repeat it in: JSON and percent escapes, HTML entities, hex, and base64, also of a longer
text such as `user:key`, and broken over lines or with separators between its letters (`73:6b`, UTF-16). Not in octal,
base32, lists of numbers, or encoded twice. Keys that were renewed count on: a token that has expired here may be valid
elsewhere.

Most bodies hold nothing of the kind, so the first look is a handful of searches, some microseconds for 2 KB; the exact
one (`_Decoded`) is made only where that found something, or a letter of a key behind an escape.
Does not cover: where keys come from (models.keys), or keys written into a model (survey.secrecy).
"""

from __future__ import annotations

import base64
import html
import io
import math
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property

HIDDEN = "[key]"
_LONG = 16
_LEAST_SECRET = 8  # of letters and digits; shorter "keys" are placeholders such as EMPTY, which an answer may well hold
_LEAST_HIDDEN = 6
_MOST_KEYS = 256  # ten days of a key that is renewed every hour; each takes a microsecond of every reply
_COMMON = bytes(sorted({*range(256)} - {*b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"}))
_LEAST_RARE = 4
_SCATTERED = 16  # letters of a form that are looked for one by one: hardly a body has as many in their order
_OF_ENCODINGS = frozenset("+/=")
# At the end of a JSON string: the beginning of an escape that may go on in the next one.
_CUT_ESCAPE = re.compile(rb'(?:%[0-9a-fA-F]*+|&[#0-9A-Za-z;]*+|\\\\[u0-9a-fA-F]*+)"')
_ESCAPED_MARK = re.compile(rb"\\u00(?:25|26|5[cC])")  # of %, & and \\; some encoders always write & like that
_HIDDEN_SPAN = re.compile(rb"\x01+")
_NAMED = {
    "<": "lt", ">": "gt", '"': "quot", "'": "apos", "/": "sol", "+": "plus", "=": "equals", "_": "lowbar",
    ".": "period", ":": "colon", "&": "amp",
}  # fmt: skip
_ESCAPE = re.compile(
    r"\\+u00(?P<json>[0-9a-fA-F]{2})|%(?:25)*(?P<percent>[0-9a-fA-F]{2})|&(?:amp;)?#[xX]0*(?P<hex>[0-9a-fA-F]{2});?"
    r"|&(?:amp;)?#0*(?P<decimal>[0-9]{2,3});?|(?P<named>&(?:amp|lt|gt|quot|apos|sol|plus|equals|lowbar|period|colon);)"
    r"|\\+(?P<plain>[\"/\\])"
)
# Between lines, in `73 6b`, `73:6b`, `73-6b`, `\x73\x6b` and `=73=6B`, in UTF-16, and a space without width in UTF-8.
_GAP = r"(?:\\+[nrtx]|[\s:=,;\x00-]|\u00e2\u0080\u008b){0,4}"
_OF_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-")


class SentKeys:
    """The keys that were sent. Beyond 256, the one that was sent the longest time ago is forgotten: renewing never
    makes this long.
    """

    def __init__(self) -> None:
        self._keys: dict[str, _SentKey] = {}
        self._escapes: list[tuple[bytes, re.Pattern[bytes]]] = []
        self._adds = 0

    def __bool__(self) -> bool:
        return bool(self._keys)

    def add(self, key: str) -> None:
        self._adds += 1
        if key not in self._keys:
            if len(key) < _LEAST_HIDDEN:
                return
            self._keys[key] = _SentKey(key)
            while len(self._keys) > _MOST_KEYS:
                oldest = min(self._keys.values(), key=lambda each: each.sent)
                del self._keys[oldest.key]
            self._escapes = _escapes_of(_OF_ENCODINGS.union(*self._keys))
        self._keys[key].sent = self._adds

    def clean_body(self, body: bytes, *, is_answer: bool) -> bytes:
        """A body without any key. Out of an answer only what cannot be a word of its own is taken."""
        if not self._keys:
            return body
        has_escapes = self._has_escapes(body)
        rare = body.translate(None, _COMMON)
        found = [
            key
            for key in list(self._keys.values())  # another thread may add one meanwhile
            if (key.is_secret or not is_answer) and (has_escapes or key.may_be_in(body, rare))
        ]
        if not found:
            return body
        text = body.decode("latin-1")  # byte by byte, and back
        cleaned = _cleaned(text, found)
        return body if cleaned == text else cleaned.encode("latin-1")

    def _has_escapes(self, body: bytes) -> bool:
        """Whether a letter of a key is escaped somewhere."""
        for mark, pattern in self._escapes:  # noqa: SIM110 - the mark first: looking for one letter takes a tenth
            if mark in body and pattern.search(body) is not None:
                return True
        return False

    def clean_text(self, text: str, *, is_answer: bool) -> str:
        cleaned = self.clean_body(text.encode("utf-8", "surrogatepass"), is_answer=is_answer)
        return cleaned.decode("utf-8", "surrogatepass")

    def is_in(self, text: bytes) -> bool:
        return self.clean_body(text, is_answer=True) is not text

    def may_be_in_pieces(self, body: bytes) -> bool:
        """False where no key can show however texts of this body are joined: its letters do not even come one after the
        other.
        """
        secrets = [key for key in list(self._keys.values()) if key.is_secret]
        if not secrets:
            return False
        if self._has_escapes(body) or _has_cut_escapes(body):
            return True
        rare = body.translate(None, _COMMON)
        return any(key.may_be_scattered_in(body, rare) for key in secrets)


class _SentKey:
    """`sent` is when it was sent last, counted in keys."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.sent: float = math.inf
        has_both = any(letter.isdigit() for letter in key) and any(letter.isalpha() for letter in key)
        self.is_secret = len(key) >= _LONG or (len(key) >= _LEAST_SECRET and has_both)
        needles = [needle.encode() for needle in self._needles()]
        rare = {needle: needle.translate(None, _COMMON) for needle in needles}
        self._rare = [found for found in dict.fromkeys(rare.values()) if len(found) >= _LEAST_RARE]
        self._plain = [needle for needle in needles if len(rare[needle]) < _LEAST_RARE]

    def may_be_in(self, body: bytes, rare: bytes) -> bool:
        """False where the body holds the key in no form, except perhaps behind escapes. `rare` are the body's capitals
        and digits alone, which are few in most texts: a key whose own are not among them is not in the body.
        """
        for needle in self._rare:  # no generator, which takes twice as long
            if needle in rare:
                return True
        for needle in self._plain:  # noqa: SIM110
            if needle in body:
                return True
        return False

    def may_be_scattered_in(self, body: bytes, rare: bytes) -> bool:
        """False where the body holds the letters of no form of the key in their order, whatever stands between them."""
        for few, all_ in self._scattered:  # noqa: SIM110 - no generator, which takes twice as long
            if few.match(rare) is not None and all_.match(body) is not None:
                return True
        return False

    @cached_property
    def _scattered(self) -> list[tuple[re.Pattern[bytes], re.Pattern[bytes]]]:
        """For each form two patterns: of its capitals and digits, and of all its letters."""
        needles = [needle.encode() for needle in self._needles()]
        return [(_scattered(needle.translate(None, _COMMON)), _scattered(needle)) for needle in needles]

    def spans(self, text: str, rare: bytes) -> Iterator[tuple[int, int]]:
        """The places of the key in a text without escapes; `rare` are its capitals and digits."""
        for form in dict.fromkeys((self.key, self.key.lower(), self.key.upper())):
            yield from _found(text, form)
        if self._has_parts:
            yield from self._beginnings(text)
            yield from self._ends(text)
        for form in self._encoded:
            yield from _widened(text, _found(text, form))
        for form, form_rare, pattern in self._gapped:
            if form_rare in rare:
                found = (match.span() for match in pattern.finditer(text))
                yield from found if form == self.key else _widened(text, found)

    @cached_property
    def _gapped(self) -> list[tuple[str, bytes, re.Pattern[str]]]:
        """The key and its encodings, each with the capitals and digits that a text with it has one after the other, and
        a pattern of it with separators between its letters. A form with few of those could be any text.
        """
        forms = [self.key, *self._encoded] if self.is_secret else []
        rare = {form: form.encode().translate(None, _COMMON) for form in forms}
        return [
            (form, rare[form], re.compile(_GAP.join(map(re.escape, form))))
            for form in forms
            if len(rare[form]) >= _LEAST_RARE
        ]

    @property
    def _has_parts(self) -> bool:
        """Whether parts of the key are taken out too. Not of a short key: half of it may be an ordinary word."""
        return len(self.key) >= _LONG * 3 // 2

    @cached_property
    def _encoded(self) -> list[str]:
        """The key in hex and in base64, at each of the three offsets where it may begin within a longer text."""
        raw = self.key.encode()
        forms = [raw.hex(), raw.hex().upper()] if self.is_secret else []
        for before in range(3) if self.is_secret else ():
            written = base64.b64encode(b"\0" * before + raw).decode()
            # The first and last signs hold bits of what stands before and behind.
            inner = written[(before * 8 + 5) // 6 : (before + len(raw)) * 8 // 6]
            forms += [inner, inner.replace("+", "-").replace("/", "_")]
        return list(dict.fromkeys(forms))

    def _needles(self) -> list[str]:
        whole = [self.key[:_LONG], self.key[-_LONG:]] if self._has_parts else [self.key]
        return list(dict.fromkeys([*whole, self.key.lower(), self.key.upper(), *self._encoded]))

    def _beginnings(self, text: str) -> Iterator[tuple[int, int]]:
        for start, end in _found(text, self.key[:_LONG]):
            while end < len(text) and end - start < len(self.key) and text[end] == self.key[end - start]:
                end += 1
            yield start, end

    def _ends(self, text: str) -> Iterator[tuple[int, int]]:
        for start, end in _found(text, self.key[-_LONG:]):
            while start > 0 and end - start < len(self.key) and text[start - 1] == self.key[-(end - start) - 1]:
                start -= 1
            yield start, end


class _Decoded:
    """A text with its escapes replaced by what they stand for, and where each letter of that came from."""

    def __init__(self, text: str) -> None:
        decoded, at, shift = io.StringIO(), 0, 0
        self._starts, self._shifts = array("I", [0]), array("I", [0])  # a body may hold nothing but escapes
        for match in _ESCAPE.finditer(text):
            decoded.write(text[at : match.start()])
            decoded.write(_letter(match))
            shift += len(match[0]) - 1
            self._starts.append(match.end() - shift)
            self._shifts.append(shift)
            at = match.end()
        decoded.write(text[at:])
        self.text = decoded.getvalue()

    def origin(self, place: int) -> int:
        """The place in the original of a letter of `text`, or of its end."""
        return place + self._shifts[bisect_right(self._starts, place) - 1]


def _escapes_of(letters: frozenset[str]) -> list[tuple[bytes, re.Pattern[bytes]]]:
    """Patterns that find an escape of one of these letters: its first characters, and the whole escape."""
    both = {f"{ord(letter):02{case}}" for letter in letters for case in "xX"}
    codes = "|".join(sorted(both)).encode()
    names = "|".join(_NAMED[letter] for letter in sorted(letters) if letter in _NAMED).encode()
    quoted = rb"|[\"\\]" if letters & {'"', "\\"} else b""
    return [
        (b"%", re.compile(rb"%(?:25)*(?:" + codes + rb")")),
        (b"&", re.compile(rb"&(?:(?:amp;)?#|(?:" + names + rb");)")),
        (b"\\", re.compile(rb"\\(?:u00(?:" + codes + rb")|/" + quoted + rb")")),
    ]


def _has_cut_escapes(body: bytes) -> bool:
    """Whether the beginning of an escape may stand at the end of a text, or is itself escaped somewhere."""
    marks = b"%" in body or b"&" in body or b"\\\\" in body  # first: looking for one letter takes a tenth
    if marks and _CUT_ESCAPE.search(body) is not None:
        return True
    return b"\\u00" in body and _ESCAPED_MARK.search(body) is not None


def _scattered(needle: bytes) -> re.Pattern[bytes]:
    """A pattern that finds the first letters of a needle in their order. It never goes back, so it takes one look."""
    return re.compile(b"".join(b"[^\\x%02x]*+\\x%02x" % (each, each) for each in needle[:_SCATTERED]), re.DOTALL)


def _letter(match: re.Match[str]) -> str:
    if match["named"]:
        return html.unescape(match["named"])[:1]
    if match["decimal"]:
        return chr(int(match["decimal"]))
    return match["plain"] or chr(int(match["json"] or match["percent"] or match["hex"], 16))


def _cleaned(text: str, keys: list[_SentKey]) -> str:
    decoded = _Decoded(text)
    rare = decoded.text.encode("latin-1").translate(None, _COMMON)
    is_hidden = bytearray(len(text))  # a byte for each letter: a body may hold nothing but keys
    for key in keys:
        for start, end in key.spans(decoded.text, rare):
            first, last = decoded.origin(start), decoded.origin(end)
            is_hidden[first:last] = b"\1" * (last - first)
    cleaned, at = io.StringIO(), 0
    for span in _HIDDEN_SPAN.finditer(is_hidden):
        cleaned.write(text[at : span.start()])
        cleaned.write(HIDDEN)
        at = span.end()
    cleaned.write(text[at:])
    return cleaned.getvalue()


def _found(text: str, form: str) -> Iterator[tuple[int, int]]:
    at = text.find(form)
    while at >= 0:
        yield at, at + len(form)
        at = text.find(form, at + 1)


def _widened(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The spans, which come in their order, widened by the characters that were encoded together with the key; not by
    what a span before has taken, so that each character is looked at once.
    """
    reached = 0
    for start, end in spans:
        if end <= reached:
            continue
        while start > reached and text[start - 1] in _OF_BASE64 and text[start - 2 : start - 1] != "\\":
            start -= 1
        while end < len(text) and text[end] in _OF_BASE64:
            end += 1
        yield max(start, reached), end
        reached = end


SENT = SentKeys()  # of the whole process: what one model's service repeats may be another's key
