import pytest

from headrace.models.http_client.failures import retry_after_s
from headrace.models.http_client.rate_headers import chat_rates, duration_s
from headrace.models.protocols.structured import AnswerShapes, strict_form
from headrace.models.provider import Request, answer_envelope

OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"enum": ["a", "b"]}, {"enum": ["a", "b"], "type": "string"}),
        ({"enum": [1, "a", None]}, {"enum": [1, "a", None], "type": ["integer", "string", "null"]}),
        ({"type": "number", "minimum": 0, "maximum": 10}, {"type": "number"}),
        (
            {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 2},
            {"type": "array", "items": {"type": "string"}, "minItems": 2},
        ),
        ({**OBJECT, "required": ["a"]}, {**OBJECT, "required": ["a"], "additionalProperties": False}),
        # Strict mode could not say these without changing what may be answered.
        (OBJECT, None),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, None),
        ({"type": "object"}, None),
        ({"type": "array"}, None),
        ({"oneOf": [{"type": "string"}]}, None),
        ({"enum": [["a"]]}, None),
        ({}, None),
        ({"type": "array", "items": {"not": {}}}, None),
    ],
)
def test_a_schema_is_said_strictly_where_it_can_be(schema, strict):
    assert strict_form(schema) == strict


def test_every_kind_s_envelope_can_be_said_strictly():
    for schema in ({"enum": ["Yes", "No"]}, {"type": "number", "minimum": 1}, {"enum": [1, 2, 3]}):
        envelope = answer_envelope(schema)
        assert envelope is not None
        assert strict_form(envelope) is not None


def _asked(schema, *, has_comment=False):
    return Request("q", "", "Well?", schema, {}, {}, 0, 1, has_comment)


def test_a_comment_is_asked_for_behind_the_answer():
    made: list[object] = []
    shape = AnswerShapes(lambda envelope: made.append(envelope) or b"x").of(_asked({"enum": ["a"]}, has_comment=True))
    assert shape is not None
    (envelope,) = made
    assert list(envelope["properties"]) == envelope["required"] == ["answer", "comment"]
    assert strict_form(envelope) is not None


def test_a_shape_is_made_once_for_each_schema_and_not_kept_for_ever():
    made: list[object] = []
    shapes = AnswerShapes(lambda envelope: made.append(envelope) or b"x")
    schema = {"enum": ["a"]}
    assert shapes.of(_asked(schema)) is shapes.of(_asked(schema))
    assert len(made) == 1
    for number in range(1000):
        assert str(number) in shapes.of(_asked({"enum": [number]})).in_words
    assert len(shapes._made) <= 256


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1),
        ("6m0s", 360),
        ("20ms", 0.02),
        ("1h2m3.5s", 3723.5),
        ("1d", 86_400),
        ("7", 7),
        ("soon", None),
        ("", None),
    ],
)
def test_durations_in_headers(text, seconds):
    assert duration_s(text) == (None if seconds is None else pytest.approx(seconds))


def test_a_limit_by_the_day_is_no_limit_by_the_minute():
    headers = {"x-ratelimit-limit-requests": "14400", "x-ratelimit-remaining-requests": "14370"}
    assert chat_rates(headers, counts_by_day=True).requests_per_minute is None
    assert chat_rates(headers, counts_by_day=False).requests_per_minute == 14400
    assert chat_rates({}, counts_by_day=False) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "-5"}, 0),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:30 GMT", "Date": "Wed, 21 Oct 2015 07:28:00 GMT"}, 30),
        ({"retry-after-ms": "x", "Retry-After": "2"}, 2),
        ({}, None),
    ],
)
def test_when_to_come_back(headers, seconds):
    assert retry_after_s(headers) == seconds
