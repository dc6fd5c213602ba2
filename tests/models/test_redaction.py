"""A key is found in whatever form a service repeats it, and nothing else is taken out."""

import base64
import html
import json
import random
import string
import tracemalloc
import urllib.parse

import pytest

from headrace.models.redaction import SentKeys

KEY = "sk-very-secret-4711/ab+cd=efghijklmnop_QRST"
FORMS = {
    "plain": KEY,
    "twice": f"{KEY}{KEY}",
    "upper": KEY.upper(),
    "lower": KEY.lower(),
    "percent": urllib.parse.quote(KEY, safe=""),
    "percent-small": urllib.parse.quote(KEY, safe="").lower().replace("qrst", "QRST"),
    "percent-all": "".join(f"%{ord(letter):02X}" for letter in KEY),
    "percent-twice": urllib.parse.quote(urllib.parse.quote(KEY, safe=""), safe=""),
    "json-slash": KEY.replace("/", "\\/"),
    "json-all": "".join(f"\\u{ord(letter):04x}" for letter in KEY),
    "json-twice": json.dumps("".join(f"\\u{ord(letter):04X}" for letter in KEY))[1:-1],
    "json-some": KEY.replace("s", "\\u0073").replace("+", "\\u002B"),
    "html": html.escape(KEY).replace("/", "&#x2F;").replace("=", "&#61;"),
    "html-all": "".join(f"&#{ord(letter)};" for letter in KEY),
    "base64": base64.b64encode(KEY.encode()).decode(),
    "basic": base64.b64encode(f"user:{KEY}".encode()).decode(),
    "bearer": base64.b64encode(f"Bearer {KEY} and more".encode()).decode(),
    "base64-url": base64.urlsafe_b64encode(f"x{KEY}".encode()).decode(),
    "base64-json": base64.b64encode(f"xy{KEY}".encode()).decode().replace("/", "\\/"),
    "hex": KEY.encode().hex(),
    "hex-upper": KEY.encode().hex().upper(),
    "cut": KEY[:20],
    "cut-in-front": KEY[-18:],
    "cut-json": KEY.replace("s", "\\u0073")[:60],
}


def _apart(text: str, size: int, gap: str) -> str:
    return gap.join(text[at : at + size] for at in range(0, len(text), size))


GAPPED = {
    "hex-spaced": _apart(KEY.encode().hex(), 2, " "),
    "hex-colons": _apart(KEY.encode().hex().upper(), 2, ":"),
    "hex-escapes": "\\x" + _apart(KEY.encode().hex(), 2, "\\x"),
    "hex-escapes-json": "\\\\x" + _apart(KEY.encode().hex(), 2, "\\\\x"),
    "quoted-printable": "=" + _apart(KEY.encode().hex().upper(), 2, "="),
    "base64-lines": _apart(base64.b64encode(KEY.encode()).decode(), 20, "\n"),
    "base64-lines-json": _apart(base64.b64encode(f"user:{KEY}".encode()).decode(), 13, "\\r\\n"),
    "letters": _apart(KEY, 1, " "),
    "letters-dashes": _apart(KEY, 1, "-"),
    "lines": _apart(KEY, 9, "\\n"),
    "no-width": _apart(KEY, 1, "\u200b"),
    "utf-16": KEY.encode("utf-16-le").decode(),
}


@pytest.fixture
def sent() -> SentKeys:
    found = SentKeys()
    found.add(KEY)
    return found


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("around", ["{}", '{{"error":{{"message":"Bad {} é"}}}}', "<p>{}</p> 100% & more %20"])
def test_a_key_is_taken_out_in_every_form(sent, form, around):
    cleaned = sent.clean_body(around.format(form).encode(), is_answer=True).decode()
    assert cleaned in {around.format("[key]"), around.format("[key][key]")}


@pytest.mark.parametrize("form", GAPPED.values(), ids=GAPPED)
def test_a_key_is_taken_out_where_lines_or_separators_break_it(sent, form):
    body = f'{{"error":{{"message":"Bad <{form}> e"}}}}'.encode()
    cleaned = sent.clean_body(body, is_answer=True).decode()
    before, hidden, behind = cleaned.partition("[key]")
    assert hidden
    assert (
        len(before + behind) <= len('{"error":{"message":"Bad <> e"}}') + 8
    )  # marks of an encoding, a prefix's letters
    assert cleaned.endswith('> e"}}')


@pytest.mark.parametrize("form", [KEY, FORMS["base64"], GAPPED["hex-spaced"]])
def test_what_stands_around_a_key_stays_and_a_body_stays_json(sent, form):
    body = json.dumps({"text": f"Yours:\n{form}\nsee https://host/v1/ {form}"}).encode()
    assert json.loads(sent.clean_body(body, is_answer=True))["text"] == "Yours:\n[key]\nsee https://host/v1/ [key]"
    assert sent.clean_text(f"https://host/v1/{KEY}/more/words", is_answer=True) == "https://host/v1/[key]/more/words"


@pytest.mark.parametrize("around", ["é{}é", "\ud800{}", "{}"])
def test_a_text_is_cleaned_like_a_body(sent, around):
    assert sent.clean_text(around.format(FORMS["json-all"]), is_answer=True) == around.format("[key]")


def test_a_former_key_is_taken_out_too(sent):
    sent.add("another-key-0123456789")
    assert sent.clean_text(f"{KEY} another-key-0123456789", is_answer=True) == "[key] [key]"


def test_a_key_that_was_renewed_two_hundred_times_is_taken_out_in_all_its_versions(sent):
    keys = [f"token-{number:04}-0123456789" for number in range(200)]
    for key in keys:
        sent.add(key)
    assert sent.clean_text(" ".join([KEY, *keys]), is_answer=False) == " ".join(["[key]"] * 201)


def test_a_key_in_use_is_not_forgotten_however_often_another_is_renewed(sent):
    for number in range(1_000):
        sent.add(f"token-{number:04}-0123456789")
        sent.add(KEY)
    assert sent.clean_text(f"{KEY} token-0000-0123456789 token-0999-0123456789", is_answer=False) == (
        "[key] token-0000-0123456789 [key]"
    )


def test_what_holds_no_key_is_left_as_it_is(sent):
    chance = random.Random(1)
    letters = string.printable + "%&\\u00é"
    for _ in range(2_000):
        text = "".join(chance.choices(letters, k=80))
        assert sent.clean_text(text, is_answer=True) == text
    assert sent.clean_text("sk-very-secret, he said", is_answer=True) == "sk-very-secret, he said"


def test_placeholders_stay_in_answers_and_leave_error_texts():
    sent = SentKeys()
    for key in ("EMPTY", "dummy-key", "changeme"):
        sent.add(key)
    assert sent.clean_text("EMPTY dummy-key changeme", is_answer=True) == "EMPTY dummy-key changeme"
    assert sent.clean_text("EMPTY dummy-key changeme", is_answer=False) == "EMPTY [key] [key]"


def test_a_short_key_of_letters_and_digits_is_a_secret():
    sent = SentKeys()
    sent.add("a1b2c3d4")
    assert sent.clean_text('{"a": "a1b2c3d4"}', is_answer=True) == '{"a": "[key]"}'


@pytest.mark.parametrize("body", [b"%41" * 300_000, KEY.encode() * 15_000], ids=["escapes", "keys"])
def test_hiding_keys_takes_a_few_times_the_size_of_a_body(sent: SentKeys, body: bytes):
    tracemalloc.start()
    try:
        cleaned = sent.clean_body(body, is_answer=True)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert KEY.encode() not in cleaned
    assert peak < 10 * len(body)


def test_random_keys_are_found_among_random_escapes():
    chance = random.Random(2)
    letters = string.ascii_letters + string.digits + '-_./+=~:"'
    ways = [
        lambda c: json.dumps(c)[1:-1],
        lambda c: f"%{ord(c):02x}",
        lambda c: f"\\u{ord(c):04X}",
        lambda c: f"&#{ord(c)};",
    ]
    for _ in range(300):
        sent, key = SentKeys(), "".join(chance.choices(letters, k=chance.randint(16, 120)))
        sent.add(key)
        written = "".join(chance.choice(ways)(letter) for letter in key)
        assert sent.clean_text(f"before {written} after", is_answer=True) == "before [key] after"
        framed = "".join(chance.choices(letters, k=chance.randint(0, 20)))
        encoded = base64.b64encode(f"{framed}{key}{framed}".encode()).decode()
        assert sent.clean_text(f'"{encoded}"', is_answer=True) == '"[key]"'
