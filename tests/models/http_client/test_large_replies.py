"""Replies whose values would take too much memory, and the same below that bound: their answers are equal."""

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from headrace.models.http_client import envelope
from headrace.models.http_client.decoding import BadReply
from headrace.models.http_client.http_options import HttpOptions
from headrace.models.http_client.http_provider import ErrorInside, Stream
from headrace.models.protocols import anthropic_messages, openai_chat
from headrace.models.provider import Finish, Reply
from headrace.results.columns.raw_responses import decoded_response, generated_text
from headrace.survey.known_services import SERVICES
from headrace.survey.model import Model

FAT = b"[" + b",".join([b"{}"] * 345_000) + b"]"  # 1.04 MB of text, which would take more than 48 MB as values
SMALL = b"[{}]"
TAIL = b'"message":{"content":"It rains."},"finish_reason":"length"'


MODEL = Model("m", service_name="openai_compatible", base_url="http://127.0.0.1:1")
OPTIONS = HttpOptions.of("m", SERVICES["openai_compatible"], MODEL.parameters)

chat = openai_chat.ChatCompletions(MODEL, OPTIONS).reply
messages = anthropic_messages.Messages(MODEL, OPTIONS).reply


CHATS = {
    "not a number": b'{"choices":[{' + TAIL + b',"logprobs":[%s,NaN,-Infinity,Infinity,"NaN \\" NaN"]}]}',
    "half a pair in what nothing reads": b'{"choices":[{' + TAIL + b',"logprobs":[%s,"\\ud83d"]}]}',
    "half a pair in the answer": b'{"choices":[{"message":{"content":"a\\ud83d\\\\ud83d\\ud83d\\ude00"},"z":%s}]}',
    "a byte order mark": b'\xef\xbb\xbf{"choices":[{' + TAIL + b',"logprobs":%s}]}',
    "no UTF-8 in what nothing reads": b'{"choices":[{' + TAIL + b',"logprobs":[%s,"\xff"]}]}',
    "no UTF-8 in the answer": b'{"choices":[{"message":{"content":"caf\xe9"},"logprobs":%s}]}',
    "several choices": b'{"choices":[{' + TAIL + b',"logprobs":%s},{"message":{"content":"second"}}],"usage":{}}',
    "choices twice": b'{"choices":[{},{}],"choices":[{' + TAIL + b'}],"z":%s}',
    "a number out of range": b'{"choices":[{' + TAIL + b',"logprobs":%s}],"z":1e400}',
}


@pytest.mark.parametrize("of", [pytest.param(body, id=name) for name, body in CHATS.items()])
def test_an_answer_does_not_depend_on_what_stands_beside_it(of: bytes):
    small, large = (chat(of.replace(b"%s", beside)) for beside in (SMALL, FAT))
    assert (large.text, large.finish) == (small.text, small.finish)
    assert large.text
    assert generated_text(large.raw) == generated_text(small.raw) == large.text


def test_a_repaired_answer_is_marked_above_the_bound_too():
    body = CHATS["half a pair in the answer"]
    for beside in (SMALL, FAT):
        reply = chat(body.replace(b"%s", beside))
        assert reply.text == "a\ufffd\\ud83d\U0001f600"
        assert reply.repaired


@pytest.mark.parametrize("choices", [b"[]", b"null"])
def test_an_error_beside_no_choices_is_said(choices: bytes):
    for beside in (SMALL, FAT):
        with pytest.raises(ErrorInside) as raised:
            chat(b'{"choices":' + choices + b',"error":{"message":"bad"},"z":' + beside + b"}")
        assert raised.value.said.words == "bad"


def joined(stream: Stream, events: list[bytes]) -> tuple[str, Finish, int]:
    for event in events:
        stream.take(event)
    reply = stream.reply(b"")
    return reply.text, reply.finish, reply.input_tokens


@pytest.mark.parametrize("beside", [SMALL, FAT])
def test_no_event_of_a_stream_loses_its_piece(beside: bytes):
    fat = b',"z":' + beside
    chats = [
        b'{"choices":[{"delta":{"content":"It "}}]}',
        b'{"choices":[{"delta":{"content":"never "},"logprobs":' + beside + b"}]}",
        b'{"choices":[{"delta":{"content":"rains."},"finish_reason":"length"}]}',
        b'{"choices":[],"usage":{"prompt_tokens":11}' + fat + b"}",
    ]
    assert joined(openai_chat._ChatStream(), chats) == ("It never rains.", Finish.LENGTH, 11)
    said = [
        b'{"type":"message_start","message":{"usage":{"input_tokens":11}}' + fat + b"}",
        b'{"type":"content_block_start","content_block":{"type":"tool_use"}' + fat + b"}",
        b'{"type":"content_block_delta","delta":{"partial_json":"[1,"}' + fat + b"}",
        b'{"type":"content_block_delta","delta":{"partial_json":"2]"}}',
        b'{"type":"message_delta","delta":{"stop_reason":"max_tokens"}' + fat + b"}",
    ]
    assert joined(anthropic_messages._MessageStream(), said) == ("[1,2]", Finish.LENGTH, 11)


def test_an_envelope_has_every_field_that_a_protocol_reads():
    def names(shape: Any) -> set[str]:
        return {field.name for field in msgspec.structs.fields(shape)}

    assert names(openai_chat._Completion) | names(anthropic_messages._Answer) <= names(envelope._Envelope)
    assert names(openai_chat._ChatChoice) <= names(envelope._ChoiceFields)


@pytest.mark.parametrize("read", [chat, messages])
@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" * 3_000 + b'{"content":[]}',
        b'{"a":' + FAT + b',"content":[',
        b'{"a":' + FAT + b',"z":01}',
        b'{"a":' + FAT + b',"content":[]} and more',
        b'{"a":' + b"[" * 600_000 + b"]" * 600_000 + b"}",
        b'{"a":' + FAT + b',"z":NaN,"' + b'\\"' * 1_000_000,
        b'{"a":' + FAT + b',"z":"' + b"\\ud800" * 300_000 + b"\\",
    ],
    ids=["marks", "cut", "01", "more", "deep", "quotes", "halves"],
)
def test_what_is_no_json_is_said_to_be_none(read: Callable[[bytes], Reply], body: bytes):
    began = time.monotonic()
    with pytest.raises(BadReply, match="is not the JSON it should be"):
        read(body)
    assert time.monotonic() - began < 20  # 0.3; what takes its square would take hours


def peak_bytes(read: Callable[[bytes], object], body: bytes) -> int:
    tracemalloc.start()
    try:
        read(body)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


BACKSLASHES = b'"' + rb"\\" * 300_000 + b'"'
TO_REPAIR = {
    "texts": (chat, b'{"choices":[{' + TAIL + b'}],"z":[' + b'"",' * 350_000 + b"NaN]}"),
    "backslashes": (chat, b'{"choices":[{' + TAIL + b'}],"y":' + FAT + b',"z":[' + BACKSLASHES + b",NaN]}"),
    "stored text": (generated_text, b'{"choices":[{' + TAIL + b'}],"z":[' + BACKSLASHES + b",NaN]}"),
    "stored values": (decoded_response, b'{"choices":[{' + TAIL + b'}],"z":[' + BACKSLASHES + b",NaN]}"),
}


@pytest.mark.parametrize(("read", "body"), TO_REPAIR.values(), ids=TO_REPAIR)
def test_repairing_a_reply_takes_a_few_times_its_size(read: Callable[[bytes], object], body: bytes):
    assert peak_bytes(read, body) < 10 * len(body)  # at most 5; 25 to 74 with an object for each text or backslash


def test_a_stored_stream_is_read_an_event_at_a_time():
    event = b'data: {"content":[' + b",".join([b"{}"] * 100_000) + b"]}\r\n\r\n"
    one, eight = (peak_bytes(generated_text, event * count) for count in (1, 8))
    assert eight < 4 * one


def test_a_stop_reason_that_is_no_text_is_a_bad_reply():
    with pytest.raises(BadReply, match="stop_reason"):
        joined(anthropic_messages._MessageStream(), [b'{"type":"message_delta","delta":{"stop_reason":["a"]}}'])


@pytest.mark.parametrize("error", [b'{"detail":"\\ud800"}', b'{"\\ud800":1}', b'{"message":{"a":"\\ud800"}}'])
@pytest.mark.parametrize("read", [chat, messages])
def test_an_error_with_half_a_letter_is_an_error_with_words(read: Callable[[bytes], Reply], error: bytes):
    with pytest.raises(ErrorInside) as raised:
        read(b'{"error":' + error + b"}")
    assert raised.value.said.words.encode()


@pytest.mark.parametrize("depth", range(900, 1_010))
def test_an_error_of_any_depth_is_read_or_refused(depth: int):
    for error in (b'{"a":' * depth + b"1" + b"}" * depth, b'{"code":' + b"[" * depth + b"]" * depth + b"}"):
        with pytest.raises((ErrorInside, BadReply)):
            chat(b'{"error":' + error + b"}")
