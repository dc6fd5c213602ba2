"""Asks a model over HTTP, in any protocol: it chooses address and key, sends again where that helps, names failures.

Covers: one call from request to reply or typed error. Does not cover: what requests and replies look like (a Dialect:
models.protocols.openai_chat, models.protocols.anthropic_messages), or calling again (schedule, execute).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec
from multidict import CIMultiDict

from headrace.errors import NetworkAway, ProviderError, ProviderTimeout, ProviderUnavailable
from headrace.models.address_list import AddressList
from headrace.models.http_client.addresses import Address, Addresses, beginning_of
from headrace.models.http_client.bodies import is_event_stream
from headrace.models.http_client.decoding import BadReply
from headrace.models.http_client.failures import About, Said, SchemaNotTaken, failure, said_by
from headrace.models.http_client.file_bodies import FileBody
from headrace.models.http_client.fitted_files import fitted
from headrace.models.http_client.http_options import HttpOptions, usual_key
from headrace.models.http_client.key_pieces import is_in_pieces
from headrace.models.http_client.transport import NETWORK_ERRORS, Answered, Transport, network_problem
from headrace.models.keys import key_for
from headrace.models.protocols.structured import AnswerShape
from headrace.models.provider import RateHint, Reply, Request
from headrace.models.redaction import SENT
from headrace.models.token_counts import count_untold
from headrace.survey.files.size_limits import SizeLimit
from headrace.survey.known_services import Service
from headrace.survey.model import Model
from headrace.survey.secrecy import refuse_value

_WITHHELD = b'{"withheld": "a reply that held a key in pieces"}'
_UNTOLD = "its words are withheld: they hold a key in pieces"


class ErrorInside(Exception):
    """A reply that was sent as a success and holds an error."""

    def __init__(self, said: Said) -> None:
        super().__init__(said.words)
        self.said = said


class Stream(Protocol):
    """One streamed reply on its way."""

    def take(self, data: bytes) -> bool:
        """Take one event's data; True where it was the last."""
        ...

    def reply(self, body: bytes) -> Reply: ...


class Dialect(Protocol):
    """A protocol: one file that says how a request is written and a reply is read. It does no I/O."""

    path: str

    def headers(self, key: str | None) -> dict[str, str]: ...

    def answer_shape(self, request: Request) -> AnswerShape | None:
        """How the protocol demands the answer that is asked for; None where that is plain text."""
        ...

    def body(self, request: Request, in_words: str, shape: AnswerShape | None) -> bytes | FileBody:
        """Writes a request, with `in_words` added to its prompt, or with the shape to enforce.

        A prompt with files is a FileBody; FileUnusable where the protocol takes no such file.
        """
        ...

    def rates(self, headers: Mapping[str, str]) -> RateHint | None: ...

    def reply(self, body: bytes) -> Reply:
        """Raises BadReply where the body makes no sense, ErrorInside where it holds an error."""
        ...

    def stream(self) -> Stream: ...


class HttpProvider:
    """A provider for any dialect."""

    def __init__(self, model: Model, service: Service, options: HttpOptions, dialect: Dialect) -> None:
        self._model = model
        self._dialect = dialect
        self._key = key_for(model.name, model.parameters, usual_key(service, options.base_urls))
        if self._key.known is not None:
            refuse_value(model.name, model.parameters, self._key.known)
        self._addresses = Addresses(options.base_urls, dialect.path, time.monotonic)
        self._has_affinity = options.affinity is not None
        self._transport = Transport(options)
        self._size_limit = SizeLimit(model.service_name, options.max_file_bytes)
        self._sent_key: str | None = None
        self._headers: Mapping[str, str] = {}

    @property
    def is_instant(self) -> bool:
        return False

    def follow(self, known: AddressList) -> None:
        """Ask at these addresses, as they are at each call: a model's address file may change."""
        self._addresses.follow(known)

    async def ask(self, request: Request) -> Reply:
        """Ask the least busy address, or the one that the prompt's beginning belongs to; where one cannot answer, the
        others in turn.
        """
        if not request.files:
            return await self._ask_in_turn(request)
        async with fitted(request, self._size_limit) as smaller:
            return await self._ask_in_turn(smaller)

    async def _ask_in_turn(self, request: Request) -> Reply:
        tried: list[Address] = []
        first: ProviderUnavailable | None = None
        beginning = beginning_of(request) if self._has_affinity else None
        while (address := self._addresses.pick(tried, beginning)) is not None:
            try:
                reply = await self._ask_at(address, request)
            except ProviderTimeout as error:
                self._addresses.failed(address, error)
                raise  # its time is up
            except ProviderUnavailable as error:
                self._addresses.failed(address, error)
                tried.append(address)
                # One address that answered at all says more than one that was not reached.
                first = error if first is None or isinstance(first, NetworkAway) else first
            else:
                reply.changes = self._addresses.answered(address)
                return reply
        assert first is not None, "asked before its addresses were known"
        raise self._addresses.all_away(self._model.name) if isinstance(first, NetworkAway) and len(tried) > 1 else first

    def is_changed(self) -> bool:
        return self._key.look_again() != self._sent_key or not self._headers

    async def close(self) -> None:
        await self._transport.close()

    async def _ask_at(self, address: Address, request: Request) -> Reply:
        address.in_flight += 1
        try:
            shape = self._dialect.answer_shape(request)
            if shape is None or not address.takes_schema:
                return await self._call(address, request, shape, is_enforced=False)
            try:
                return await self._call(address, request, shape, is_enforced=True)
            except SchemaNotTaken as error:
                reply = await self._call(address, request, shape, is_enforced=False)
                if error.is_lasting:  # only now: had the call failed again, the schema was not to blame
                    address.takes_schema = False
                return reply
        finally:
            address.in_flight -= 1

    async def _call(self, address: Address, request: Request, shape: AnswerShape | None, *, is_enforced: bool) -> Reply:
        in_words = "" if is_enforced or shape is None else shape.in_words
        body = self._dialect.body(request, in_words, shape if is_enforced else None)
        try:
            answered = await self._exchange(address, body)
            if 200 <= answered.status < 300:
                reply = answered.streamed or self._whole_reply(answered.body)
                if SENT and not _is_in_one_piece(reply, answered.body):
                    reply = _without_keys(reply)
                reply.rates = self._dialect.rates(answered.headers)
                count_untold(self._model, request, reply)
                return reply
            problem = self._failure(address, answered, said_by(answered.body), is_enforced)
        except ErrorInside as error:
            problem = self._failure(address, None, error.said, is_enforced)
        except BadReply as error:
            problem = ProviderUnavailable(
                SENT.clean_text(f"{self._model.name} at {address.shown}: {error}", is_answer=False)
            )
        except NETWORK_ERRORS as error:
            problem = network_problem(error, self._model.name, address.shown)
        # Out here, so that no error of the client hangs on to it: some of them hold the headers, with the key.
        raise problem

    async def _exchange(self, address: Address, body: bytes | FileBody) -> Answered:
        """Sends the body, and once more where the key was refused and its function gives another one."""
        key = await self._key.value()
        answered = await self._send(address, body, key)
        if answered.status == 401 and await self._key.renew(key):
            answered = await self._send(address, body, await self._key.value())
        return answered

    async def _send(self, address: Address, body: bytes | FileBody, key: str | None) -> Answered:
        if key != self._sent_key or not self._headers:
            self._sent_key, self._headers = key, self._transport.headers(self._dialect.headers(key))
        stream = self._dialect.stream() if self._transport.streams else None
        answered = await self._transport.post(address, body, self._headers, _taker(stream))
        _hide_keys(answered)
        if stream is not None and answered.was_streamed:
            answered.streamed = stream.reply(answered.body)
        return answered

    def _whole_reply(self, body: bytes) -> Reply:
        """Reads a reply that was not streamed. One that holds a key in pieces is neither kept nor quoted."""
        if not _is_in_pieces(body):
            return self._dialect.reply(body)
        try:
            reply = self._dialect.reply(body)
        except BadReply:
            raise BadReply(_UNTOLD) from None
        except ErrorInside as error:
            raise ErrorInside(Said(error.said.marks, _UNTOLD, error.said.status)) from None
        reply.raw = _WITHHELD
        return reply

    def _failure(self, address: Address, answered: Answered | None, said: Said, sent_schema: bool) -> ProviderError:
        about = About(self._model.name, address.shown, self._key.origin)
        said = Said(said.marks, SENT.clean_text(said.words, is_answer=False), said.status)
        if answered is None:
            return failure(about, said.status, {}, said, sent_schema=sent_schema)
        return failure(about, answered.status, answered.headers, said, sent_schema=sent_schema)


def _hide_keys(answered: Answered) -> None:
    """Takes keys out of a response before anything reads it, so that none is stored, shown or raised."""
    is_refusal = answered.status >= 300
    answered.body = SENT.clean_body(answered.body, is_answer=not is_refusal)
    if is_refusal:
        cleaned = ((name, SENT.clean_text(value, is_answer=False)) for name, value in answered.headers.items())
        answered.headers = CIMultiDict(cleaned)
    # What is around the pieces of a key is not worth the risk. A whole reply is read first (_whole_reply).
    if (is_refusal or is_event_stream(answered.body)) and _is_in_pieces(answered.body):
        answered.body = _WITHHELD


def _is_in_pieces(body: bytes) -> bool:
    """Whether a key shows where the texts of a body are joined."""
    return SENT.may_be_in_pieces(body) and is_in_pieces(body, SENT.is_in)


def _is_in_one_piece(reply: Reply, body: bytes) -> bool:
    """Whether an answer stands in its body as it is. Then it holds no key: none is left in the body."""
    return not reply.repaired and msgspec.json.encode(reply.text) in body


def _without_keys(reply: Reply) -> Reply:
    """Cleans the answer once more: a protocol joins it from pieces, and may join others than those of one name."""
    cleaned = SENT.clean_text(reply.text, is_answer=True)
    if cleaned != reply.text:
        reply.text, reply.raw = cleaned, _WITHHELD
    return reply


def _taker(stream: Stream | None) -> Callable[[bytes], bool] | None:
    """A function that gives a stream's events to `stream`, without the key: one of them may be an error."""
    if stream is None:
        return None

    def take(data: bytes) -> bool:
        try:
            return stream.take(SENT.clean_body(data, is_answer=True))
        except BadReply:
            if SENT:  # not quoted: it may hold a piece of a key
                raise BadReply("an event of its stream makes no sense") from None
            raise

    return take
