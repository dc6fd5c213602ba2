"""A service repeats a key in pieces of a reply that is not streamed: it is in nothing that a run keeps or says.

Streams are in tests/models/test_keys.py.
"""

import base64
import codecs
import functools
import itertools
import json
import time
import traceback
import tracemalloc
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import Model, QuestionFreeText, Results, Survey
from headrace.errors import ModelUnusable
from headrace.interviews import open_chunks
from headrace.limits import BreakerLimits, EndpointLimits, RetryLimits
from headrace.models import shared_limiters
from headrace.models.http_client.key_pieces import is_in_pieces
from headrace.models.redaction import SentKeys
from tests.models.behaviours import http
from tests.models.raw_server import RawCall, RawServer

NAME = "HEADRACE_TEST_KEY"
SECRET = "sk-very-secret-4711-abcdefghijklmnop"
PIECES = [SECRET[:14], SECRET[14:26], SECRET[26:]]  # none is long enough to be found alone
TOLD = [SECRET[:14], SECRET[14:26]]
TEXTS = [{"type": "text", "text": piece} for piece in PIECES]


def chat(**message: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": "stop"}]}


def with_tokens() -> dict[str, Any]:
    """As logprobs=2 makes it: other tokens stand between the pieces."""
    others = [{"token": "else"}, {"token": "other"}]
    reply = chat(content="Good")
    reply["choices"][0]["logprobs"] = {"content": [{"token": piece, "top_logprobs": others} for piece in PIECES]}
    return reply


def message(*content: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"}


GOOD = {"type": "text", "text": "Good"}
OPENAI, ANTHROPIC = "openai_compatible", "anthropic"
ANSWERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "openai": (OPENAI, chat(content=TEXTS), "[key]"),
    "openai-around-others": (OPENAI, chat(content=[TEXTS[0], {"type": "image", "text": "-"}, *TEXTS[1:]]), "[key]"),
    "openai-reasoning": (OPENAI, chat(content="Good", reasoning_details=TEXTS), "Good"),
    "openai-tokens": (OPENAI, with_tokens(), "Good"),
    "openai-repaired": (OPENAI, chat(content="Good", odd="SURROGATE", reasoning_details=TEXTS), "Good"),
    "anthropic": (ANTHROPIC, message(*TEXTS), "[key]"),
    "anthropic-around-thoughts": (ANTHROPIC, message(TEXTS[0], {"type": "x", "text": "-"}, *TEXTS[1:]), "[key]"),
    "anthropic-thoughts": (
        ANTHROPIC,
        message(*({"type": "thinking", "thinking": piece} for piece in PIECES), GOOD),
        "Good",
    ),
}
REFUSALS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "openai-unknown-shape": (OPENAI, 200, chat(refusal=PIECES)),
    "openai-error-inside": (OPENAI, 200, {"error": {"message": PIECES, "code": 401}}),
    "openai-error": (OPENAI, 422, {"detail": [{"msg": piece} for piece in PIECES]}),
    "anthropic-unknown-shape": (ANTHROPIC, 200, {"content": PIECES}),
    "anthropic-error-inside": (ANTHROPIC, 200, {"error": {"type": "authentication_error", "message": PIECES}}),
    "anthropic-error": (ANTHROPIC, 400, {"error": {"message": PIECES}}),
}


@pytest.fixture(autouse=True)
def _a_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(NAME, SECRET)
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))


def answering(status: int, reply: dict[str, Any]) -> RawServer:
    body = msgspec.json.encode(reply).replace(b"SURROGATE", b"\\ud800")

    async def answer(call: RawCall) -> None:
        call.write(http(status, body))

    return RawServer(answer)


def a_job(service: str, server: RawServer):
    model = Model("m", service_name=service, base_url=server.url, api_key_env=NAME)
    return Survey([QuestionFreeText(question_name="q", question_text="Well?")]).by(model)


def bytes_left(folder: Path) -> list[str]:
    return [path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file()]


def told_in(shown: list[str]) -> list[tuple[str, str]]:
    return [(told, text) for told in (*TOLD, SECRET) for text in shown if told in text]


@pytest.mark.parametrize(("service", "reply", "answered"), ANSWERS.values(), ids=ANSWERS)
def test_a_key_in_pieces_of_a_reply_is_neither_in_the_run_file_nor_in_the_cache(service, reply, answered, tmp_path):
    shown: list[str] = []
    with answering(200, reply) as server:
        for name in ("asked.run", "from-the-cache.run"):
            (result,) = a_job(service, server).run(tmp_path / name)
            assert result.answer["q"] == answered
            shown += [repr((result.raw_responses, result.answer, result))]  # raw responses are compressed in the file
        assert server.calls == 1
    assert "withheld" in shown[0]
    assert not told_in(shown + bytes_left(tmp_path))


@pytest.mark.parametrize(("service", "status", "reply"), REFUSALS.values(), ids=REFUSALS)
def test_a_key_in_pieces_of_an_error_is_not_quoted(service, status, reply, tmp_path, monkeypatch, capfd, caplog):
    soon = EndpointLimits(breaker=BreakerLimits(cool_down_s=0.01))
    monkeypatch.setattr(shared_limiters, "endpoint_limits", lambda _: soon)
    monkeypatch.setattr(open_chunks, "RetryLimits", functools.partial(RetryLimits, first_wait_s=0.01))
    shown: list[str] = []
    with answering(status, reply) as server:
        try:
            a_job(service, server).run(tmp_path / "a.run")
        except ModelUnusable as error:
            shown += traceback.format_exception(error)
        assert server.calls
    shown += [repr(list(Results.open(tmp_path / "a.run").failed())), *capfd.readouterr(), caplog.text]
    assert any("withheld" in text for text in shown)
    assert not told_in(shown + bytes_left(tmp_path))


def texts_of(body: bytes) -> list[bytes]:
    """The texts that came in more than one piece, joined."""
    texts: list[bytes] = []
    assert not is_in_pieces(body, lambda text: bool(texts.append(text)))
    return texts


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_what_cannot_be_read_in_a_stream_hides_no_pieces_behind_it(mark):
    events = [b'{"a": "one, "}', b"[DONE]", b'{"b": "\\ud800"}', b"{", b'a " alone', b'{"a": "two"}']
    raw = mark + b": it's \"\n\n" + b"".join(b"data: " + event + b"\n\n" for event in events)
    assert b"one, two" in texts_of(raw)
    assert b"one, two" in texts_of(raw.replace(b"\n", b"\r"))


def test_an_event_of_several_lines_is_read_as_one():
    raw = b'data: {"a":\ndata: "one, "}\n\ndata: {"a": "two"}\n\n'
    assert texts_of(raw)[0] == b"one, two"


def test_texts_that_others_stand_between_are_joined_by_what_holds_them():
    body = b'{"said": [{"text": "one, ", "else": {"text": "-"}}, {"te\\u0078t": "t\\u0077o"}, "-"]}'
    assert texts_of(body) == [b"one, -two", b"one, two"]


def test_a_key_is_found_in_texts_of_any_length_and_number():
    key, letters = b"k" * 1_000, b"x" * 100_000
    pieces = [letters, key[:1], *[b"k"] * 998, key[999:], letters]
    body = msgspec.json.encode([{"text": piece.decode()} for piece in pieces])
    assert is_in_pieces(body, lambda text: key in text)
    assert not is_in_pieces(body, lambda text: key + b"k" in text)
    names = b",".join(b'{"%d": "x"}' % number for number in range(20_000))
    assert is_in_pieces(b"[" + names + b',{"a": "kk"}, {"a": "kk"}]', lambda text: b"kkkk" in text)


@given(st.data())
@settings(max_examples=200)
def test_a_key_in_pieces_is_never_ruled_out_by_its_letters(data):
    key = data.draw(st.text(st.sampled_from('abcABC123/+-_%"\\\u00e4'), min_size=16, max_size=30))
    sent = SentKeys()
    sent.add(key)
    entities = "".join(f"&#{ord(letter)};" for letter in key)
    forms = [
        key,
        key.upper(),
        key.lower(),
        quote(key),
        quote(quote(key)),
        key.encode().hex(),
        json.dumps(key),
        entities,
    ]
    form = data.draw(st.sampled_from(forms))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(form)), max_size=6)))
    pieces = [form[start:end] for start, end in itertools.pairwise([0, *cuts, len(form)])]
    told = [{"text": piece, data.draw(st.sampled_from(["else", "A1"])): "B2 or C3"} for piece in pieces]
    encode = data.draw(st.sampled_from([json.dumps, functools.partial(json.dumps, ensure_ascii=False)]))
    body = encode(told).encode()
    if sent.is_in(form.encode()) and len(pieces) > 1:
        assert is_in_pieces(body, sent.is_in)
        assert sent.may_be_in_pieces(body)


def test_letters_that_do_not_come_in_a_keys_order_are_not_looked_at_further():
    sent = SentKeys()
    assert not sent.may_be_in_pieces(msgspec.json.encode(PIECES)), "no key was sent"
    sent.add(SECRET)
    assert sent.may_be_in_pieces(msgspec.json.encode(PIECES))
    assert not sent.may_be_in_pieces(msgspec.json.encode(PIECES[::-1]))
    assert not sent.may_be_in_pieces(msgspec.json.encode(chat(content="The harbour is a short walk away.")))


@pytest.mark.parametrize("piece", [b'\\"', b'" ', b'"\\', b"\\\\", b'{"', b"%4", b"&#", b"s\\"])
def test_a_body_made_to_be_slow_is_looked_through_in_no_time(piece):
    sent = SentKeys()
    sent.add(SECRET)
    body = b'"' + msgspec.json.encode(PIECES) + piece * (400_000 // len(piece))
    started_s = time.process_time()
    sent.may_be_in_pieces(body)
    is_in_pieces(body, sent.is_in)
    sent.clean_body(b"4711" + body, is_answer=True)
    sent.clean_body(SECRET.encode() * 4_000 + base64.b64encode(SECRET.encode() * 4_000), is_answer=True)
    assert time.process_time() - started_s < 30


def test_no_tree_is_made_of_a_large_reply():
    body = b"[" + b"[[]]," * 60_000 + b'{"text": "sk-"}]'
    tracemalloc.start()
    try:
        assert not is_in_pieces(body, lambda _: True)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
