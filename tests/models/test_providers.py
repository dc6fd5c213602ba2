"""One suite for every provider that speaks with a server: each behaviour ends in a reply or in one kind of error."""

import asyncio
import resource
import socket
import sys

import pytest

from headrace import Model
from headrace.errors import (
    ModelUnusable,
    NetworkAway,
    ProviderBusy,
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnavailable,
)
from headrace.models.provider import Finish, RateHint, Reply
from tests.models.asking import CHOICE, TEXT, a_request, ask, opened, outcome
from tests.models.behaviours import BEHAVIOURS
from tests.models.server import HostileServer, mix

SERVICES = ("openai_compatible", "anthropic")
TIMES = {"timeout_s": 20.0, "connect_timeout_s": 5.0}


def a_model(service: str, server: HostileServer, **parameters: object) -> Model:
    return Model("m", service_name=service, base_url=server.url, **{**TIMES, **parameters})


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def stream(request: pytest.FixtureRequest) -> bool:
    return request.param


ERRORS = {
    "400": ModelUnusable,
    "401": ModelUnusable,
    "echo-key": ModelUnusable,
    "402": ModelUnusable,
    "403": ModelUnusable,
    "404": ModelUnusable,
    "quota": ModelUnusable,
    "credit": ModelUnusable,
    "redirect": ModelUnusable,
    "detail": ModelUnusable,
    "no-schema-then-401": ModelUnusable,
    "408": ProviderTimeout,
    "413": ProviderRefused,
    "context": ProviderRefused,
    "too-long": ProviderRefused,
    "filtered-prompt": ProviderRefused,
    "429": ProviderBusy,
    "429-seconds": ProviderBusy,
    "429-milliseconds": ProviderBusy,
    "429-date": ProviderBusy,
    "429-odd": ProviderBusy,
    "429-billing": ProviderBusy,
    "503-seconds": ProviderBusy,
    "529": ProviderBusy,
    "500": ProviderUnavailable,
    "500-seconds": ProviderUnavailable,
    "502-html": ProviderUnavailable,
    "503": ProviderUnavailable,
    "empty-body": ProviderUnavailable,
    "wrong-shape": ProviderUnavailable,
    "wrong-shape-list": ProviderUnavailable,
    "html": ProviderUnavailable,
    "deep": ProviderUnavailable,
    "no-choices": ProviderUnavailable,
    "bad-gzip": ProviderUnavailable,
    "reset": ProviderUnavailable,
    "hang-up": ProviderUnavailable,
    "reset-mid-body": ProviderUnavailable,
    "garbage": ProviderUnavailable,
    "200MB": ProviderUnavailable,
    "200MB-announced": ProviderUnavailable,
    "gzip-bomb": ProviderUnavailable,
}
WHOLE_ERRORS = {
    "truncated-json": ProviderUnavailable,
    "short-length": ProviderUnavailable,
    "error-inside": ProviderBusy,
}
STREAM_ERRORS = {
    "stream-cut": ProviderUnavailable,
    "stream-error": ProviderBusy,
    "stream-long-line": ProviderUnavailable,
}
SLOW = {"hang", "drip", "endless"}
# A reply with the answer as it is, whatever came with it.
GOOD = {"ok", "no-usage", "odd-usage", "bom", "gzip", "chunked", "two-choices", "rates"}
GOOD_STREAMED = {"stream-left-open", "stream-ignored"}
ODD_TEXTS = {"surrogates", "bad-utf8", "nul", "emoji", "empty"}
FINISHES = {"cut-off": Finish.LENGTH, "filtered": Finish.REFUSED, "refusal": Finish.REFUSED}
TESTED_BELOW = {"echo-key-200", "no-schema", "large", "long-length"}


def test_every_behaviour_is_tested():
    told = {*ERRORS, *WHOLE_ERRORS, *STREAM_ERRORS, *SLOW, *GOOD, *GOOD_STREAMED, *ODD_TEXTS, *FINISHES, *TESTED_BELOW}
    assert told == {"ok", *BEHAVIOURS}


def test_each_failure_has_its_kind_and_names_who_was_asked_where(server, service, stream):
    wanted = ERRORS | (STREAM_ERRORS if stream else WHOLE_ERRORS)

    async def every_failure() -> dict[str, Reply | ProviderError]:
        found: dict[str, Reply | ProviderError] = {}
        async with opened(a_model(service, server, stream=stream)) as provider:
            for name in wanted:
                server.behave(name)
                found[name] = await outcome(provider, a_request(schema=CHOICE))
        return found

    found = asyncio.run(every_failure())
    assert {name: type(error) for name, error in found.items()} == wanted
    for error in found.values():
        assert str(error).startswith(f"m at {server.url}")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpt-4o-mni", "gpt-4o-mini"),
        ("claude-sonet-4-5", "claude-sonnet-4-5"),
        ("gpt-4o", None),
        ("Qwen/Qwen2.5-7B", None),
    ],
)
def test_a_name_that_a_service_does_not_know_is_compared_with_well_known_ones(server, name: str, meant: str | None):
    server.behave("404")

    async def asked() -> Reply | ProviderError:
        model = Model(name, service_name="openai_compatible", base_url=server.url)
        async with opened(model) as provider:
            return await outcome(provider, a_request())

    words = str(asyncio.run(asked()))
    assert "Check the model's name and base_url." in words
    assert ("Did you mean" in words, repr(meant) in words) == (meant is not None, meant is not None)


def test_a_failure_leaves_the_provider_fit_for_the_next_call(server, service, stream):
    server.behave(mix({"ok": 2, "reset": 1, "500": 1, "truncated-json": 1, "short-length": 1, "garbage": 1}, seed=3))

    async def many() -> list[Reply | ProviderError]:
        async with opened(a_model(service, server, stream=stream)) as provider:
            return await asyncio.gather(*(outcome(provider, a_request()) for _ in range(200)))

    replies = [found for found in asyncio.run(many()) if isinstance(found, Reply)]
    assert 30 < len(replies) < 150
    assert {reply.text for reply in replies} == {"Good"}


@pytest.mark.parametrize(
    ("behaviour", "wait_s"),
    [("429", None), ("429-seconds", 1.5), ("429-milliseconds", 0.25), ("429-odd", None), ("429-date", 20.0)],
)
def test_the_service_s_wish_to_wait_is_passed_on(server, service, behaviour, wait_s):
    server.behave(behaviour)
    (error,) = ask(a_model(service, server))
    assert isinstance(error, ProviderBusy)
    assert error.retry_after_s == (None if wait_s is None else pytest.approx(wait_s, abs=0.01))


def test_a_good_reply_is_read_whatever_comes_with_it(server, service, stream):
    async def every_reply() -> dict[str, str]:
        found: dict[str, str] = {}
        async with opened(a_model(service, server, stream=stream)) as provider:
            for name in GOOD | (GOOD_STREAMED if stream else set()):
                server.behave(name)
                found[name] = (await provider.ask(a_request())).text
        return found

    found = asyncio.run(every_reply())
    assert set(found.values()) == {"Good"}, found


def test_tokens_are_counted(server, service, stream):
    (reply,) = ask(a_model(service, server, stream=stream))
    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (11, 3, 4)
    assert reply.reasoning_tokens == (0 if service == "anthropic" else 2)
    assert b"Good" in reply.raw or stream


@pytest.mark.parametrize("behaviour", ["no-usage", "odd-usage"])
def test_tokens_that_make_no_sense_are_reckoned_by_letters(server, service, behaviour):
    server.behave(behaviour)
    (reply,) = ask(a_model(service, server))
    assert (reply.input_tokens, reply.output_tokens) == (6, 1)


@pytest.mark.parametrize("behaviour", FINISHES)
def test_why_a_model_stopped_is_told(server, service, stream, behaviour):
    server.behave(behaviour)
    (reply,) = ask(a_model(service, server, stream=stream))
    assert reply.finish is FINISHES[behaviour]


@pytest.mark.parametrize(
    ("behaviour", "text", "repaired"),
    [
        ("surrogates", "a\ufffdb", True),
        ("bad-utf8", "a\ufffdb", True),
        ("nul", "a\0b", False),
        ("emoji", "🎈", False),
        ("empty", "", False),
    ],
)
def test_odd_texts_arrive_and_can_be_stored(server, service, behaviour, text, repaired):
    server.behave(behaviour)
    (reply,) = ask(a_model(service, server))
    assert (reply.text, reply.repaired) == (text, repaired)
    reply.text.encode()


def test_an_unpaired_surrogate_in_a_prompt_is_replaced(server, service):
    (reply,) = ask(a_model(service, server), a_request("a\ud800b", system="c\ud800d"))
    assert reply.text == "Good"
    assert server.last.prompt == "a\ufffdb"


@pytest.mark.parametrize("behaviour", sorted(SLOW))
def test_a_service_that_takes_too_long_is_a_time_out(server, service, behaviour):
    server.behave(behaviour)
    (error,) = ask(a_model(service, server, timeout_s=0.3))
    assert type(error) is ProviderTimeout


def test_silence_is_a_time_out_of_its_own(server, service):
    server.behave("hang")
    (error,) = ask(a_model(service, server, read_timeout_s=0.2))
    assert type(error) is ProviderTimeout


def test_no_service_at_all_means_the_network_is_away(service):
    (error,) = ask(Model("m", service_name=service, base_url="http://127.0.0.1:1/v1"))
    assert type(error) is NetworkAway
    assert "m at http://127.0.0.1:1/v1 cannot be reached" in error.message


def test_a_name_that_does_not_exist_means_the_network_is_away(service, monkeypatch):
    def no_such_name(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_such_name)
    (error,) = ask(Model("m", service_name=service, base_url="http://no-such-host.invalid/v1"))
    assert type(error) is NetworkAway


def test_a_server_without_encryption_is_no_https_service(server, service):
    (error,) = ask(Model("m", service_name=service, base_url=server.url.replace("http:", "https:")))
    assert type(error) is ModelUnusable
    assert "certificate or encryption" in error.message


def test_more_than_was_announced_harms_no_answer(server, service):
    server.behave(["long-length", "long-length", "ok"])
    found = ask(a_model(service, server), *(a_request() for _ in range(4)))
    assert {each.text for each in found if isinstance(each, Reply)} == {"Good"}
    assert {type(each) for each in found} <= {Reply, ProviderUnavailable}


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units elsewhere")
def test_a_body_far_above_the_cap_is_refused_before_it_fills_memory(server, service):
    server.behave("200MB")
    ask(a_model(service, server))
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = ask(a_model(service, server, max_response_bytes=4 << 20), *(a_request() for _ in range(3)))
    assert all("larger than 4,194,304 bytes" in error.message for error in found)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 60_000


def test_a_body_of_some_megabytes_is_read(server, service):
    server.behave("large")
    (reply,) = ask(a_model(service, server))
    assert reply.text == "Good"
    assert len(reply.raw) > 3_000_000


def test_an_answer_s_shape_is_asked_for_and_enforced(server, service, stream):
    (reply,) = ask(a_model(service, server, stream=stream), a_request(schema=CHOICE))
    assert reply.text == '{"answer":"Good"}'
    body = server.last.body
    if service == "anthropic":
        assert body["tool_choice"] == {"type": "tool", "name": "answer"}
        assert body["tools"][0]["input_schema"]["properties"]["answer"] == CHOICE
    else:
        told = body["response_format"]["json_schema"]
        assert told["strict"] is True
        assert told["schema"]["properties"]["answer"] == {"enum": ["Good", "Bad"], "type": "string"}


def test_plain_text_is_asked_for_without_a_shape(server, service):
    ask(a_model(service, server), a_request(schema=TEXT))
    assert not server.last.is_structured


def test_a_service_that_takes_no_schema_is_asked_in_words_once_and_from_then_on(server, service, stream):
    server.behave("no-schema")
    found = ask(a_model(service, server, stream=stream), *(a_request(schema=CHOICE) for _ in range(3)))
    assert [reply.text for reply in found] == ['{"answer":"Good"}'] * 3
    assert server.calls == 4
    assert '"enum":["Good","Bad"]' in server.last.prompt


def test_a_refused_schema_is_not_remembered_where_the_call_fails_without_it_too(server, service):
    server.behave("no-schema-then-401")
    ask(a_model(service, server), a_request(schema=CHOICE), a_request(schema=CHOICE))
    assert [call.is_structured for call in server.script.kept] == [True, False, True, False]


def test_limits_in_the_headers_are_passed_on(server, service):
    server.behave("rates")
    (reply,) = ask(a_model(service, server))
    rates = reply.rates
    assert isinstance(rates, RateHint)
    told = (rates.requests_per_minute, rates.tokens_per_minute, rates.requests_left, rates.tokens_left)
    assert told == (500, 30_000, 499, 29_000)
    if service == "anthropic":
        assert rates.requests_reset_s > 0
    else:
        assert (rates.requests_reset_s, rates.tokens_reset_s) == (pytest.approx(0.12), pytest.approx(361.5))


def test_several_addresses_share_the_work(server, service):
    with HostileServer() as other:
        model = Model("m", service_name=service, base_url=[server.url, other.url])
        ask(model, *(a_request() for _ in range(20)))
        assert (server.calls, other.calls) == (10, 10)


@pytest.mark.parametrize("behaviour", ["500", "reset", "429"])
def test_an_address_that_fails_is_passed_over_and_then_avoided(server, service, behaviour):
    server.behave(behaviour)
    with HostileServer() as other:
        model = Model("m", service_name=service, base_url=[server.url, other.url, "http://127.0.0.1:1/v1"])
        found = ask(model, *(a_request() for _ in range(12)))
        assert {reply.text for reply in found if isinstance(reply, Reply)} == {"Good"}
        assert len(found) == 12
        assert (server.calls, other.calls) == (1, 12)


def test_a_slow_address_gets_less_of_the_work(server):
    server.behave("ok", latency=lambda _: 0.05)
    with HostileServer() as other:
        model = Model("m", service_name="openai_compatible", base_url=[server.url, other.url])

        async def four_at_once() -> None:
            async with opened(model) as provider:
                asked = iter(range(60))

                async def work() -> None:
                    for number in asked:
                        await provider.ask(a_request(f"{number}"))

                await asyncio.gather(*(work() for _ in range(4)))

        asyncio.run(four_at_once())
        assert server.calls + other.calls == 60
        assert other.calls > server.calls


def test_all_addresses_away_means_the_network_is_away(service):
    urls = ["http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"]
    (error,) = ask(Model("m", service_name=service, base_url=urls))
    assert isinstance(error, NetworkAway)


def test_parameters_are_sent(server):
    given = {"temperature": 0.2, "max_tokens": 50, "seed": 7, "top_p": 0.9, "logprobs": 3, "stop": "."}
    ask(a_model("openai_compatible", server, **given, extra_body={"min_p": 0.1}, extra_headers={"X-Team": "a"}))
    body = server.last.body
    wanted = {**given, "logprobs": True, "top_logprobs": 3, "stop": ["."], "min_p": 0.1, "model": "m"}
    assert {name: body[name] for name in wanted} == wanted
    assert server.last.headers["x-team"] == "a"
    ask(a_model("anthropic", server, temperature=0.2, top_k=5, stop=["."]))
    sent = {name: server.last.body[name] for name in ("temperature", "top_k", "stop_sequences", "max_tokens", "system")}
    assert sent == {
        "temperature": 0.2,
        "top_k": 5,
        "stop_sequences": ["."],
        "max_tokens": 4096,
        "system": "You are 30.",
    }


def test_a_large_prompt_is_sent(server, service):
    (reply,) = ask(a_model(service, server), a_request("x" * 3_000_000))
    assert reply.text == "Good"
    assert len(server.last.prompt) == 3_000_000


def test_a_cancelled_call_leaves_nothing_behind(server, service):
    server.behave("hang")

    async def cancelled() -> None:
        async with opened(a_model(service, server)) as provider:
            asking = asyncio.create_task(provider.ask(a_request()))
            await asyncio.sleep(0.1)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            server.behave("ok")
            assert (await provider.ask(a_request())).text == "Good"

    asyncio.run(cancelled())
