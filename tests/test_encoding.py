"""Large values are encoded into a buffer that is used again."""

import threading

import msgspec

from headrace.encoding import LARGE_BYTES, encode_large

ENCODER = msgspec.msgpack.Encoder()


def test_a_large_value_is_encoded_as_a_small_one_is():
    for text in ("x" * 3 * LARGE_BYTES, "y" * LARGE_BYTES, "ü" * 2 * LARGE_BYTES):
        assert bytes(encode_large(ENCODER, [1, text], LARGE_BYTES)) == ENCODER.encode([1, text])


def test_the_buffer_is_used_again_and_is_the_threads_own():
    first = encode_large(ENCODER, "x" * LARGE_BYTES, LARGE_BYTES)
    assert encode_large(ENCODER, "y" * LARGE_BYTES, LARGE_BYTES) is first
    elsewhere: list[bytearray] = []
    thread = threading.Thread(target=lambda: elsewhere.append(encode_large(ENCODER, "z" * LARGE_BYTES, LARGE_BYTES)))
    thread.start()
    thread.join()
    assert elsewhere[0] is not first
    assert bytes(first) == ENCODER.encode("y" * LARGE_BYTES)


def test_a_buffer_that_became_very_large_is_given_back():
    huge = "x" * 5_000_000
    first = encode_large(ENCODER, huge, len(huge))
    assert encode_large(ENCODER, huge, len(huge)) is not first
