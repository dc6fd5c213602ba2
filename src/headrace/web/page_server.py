"""The page's HTTP server: routes made from the operations, limits on what a client may ask, and its life from start to
end.

Does not cover: who may come in (web.access), what can be asked (web.api), or HTML (web.html_pages).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import msgspec
from aiohttp import web
from aiohttp.http import HttpProcessingError

from headrace.errors import HeadraceError, InvalidInput
from headrace.web.access import HEADERS, Access
from headrace.web.api import OPERATIONS
from headrace.web.downloads.sending import PATH as DOWNLOAD_PATH
from headrace.web.downloads.sending import Downloads, is_download
from headrace.web.html_pages import asset, rendered
from headrace.web.live.event_stream import follow
from headrace.web.live.streams import STREAMS, EventStream
from headrace.web.live.watches import TooManyWatch, Watches
from headrace.web.metrics import CONTENT_TYPE, Metrics
from headrace.web.openapi import openapi_document
from headrace.web.operations import AnyOperation, Method, error_reply, http_status
from headrace.web.page_log import PageLog
from headrace.web.pages import PAGES, HtmlPage
from headrace.web.reads import Reads, TooBusy
from headrace.web.sent_forms import FormSentTwice, SentForms, new_number
from headrace.web.shown_files import ShownFiles

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

API = "/api/v1"
_MOST_BODY_BYTES = 64_000
MOST_CONNECTIONS, MOST_STRANGERS = 256, 64
_MOST_LINE_BYTES = 16_000
_CLOSE_WITHIN_S = 1.0
HEADERS_WITHIN_S = _BODY_WITHIN_S = 15.0
_ASSETS = "/assets/"
_FORM_PROOF = "proof"
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_BODIES = """Send a form (curl -d concurrency=50), or JSON with its type (-H 'Content-Type: application/json')."""


class PageServer:
    """Answers requests for the files of its places."""

    def __init__(self, files: ShownFiles, access: Access, *, can_steer: bool = True) -> None:
        self._files = files
        self._access = access
        self._can_steer = can_steer
        self._reads = Reads()
        self._connections = _PageConnections()
        self._watches = Watches(self._reads)
        self._downloads = Downloads(files)
        self._metrics = Metrics(files)
        self._sent_forms = SentForms()

    @asynccontextmanager
    async def running(self, listener: socket.socket) -> AsyncGenerator[None]:
        """While the block runs, the server answers at a socket that listens already."""
        runner = web.AppRunner(
            self._application(),
            access_log=None,  # addresses hold the token
            logger=PageLog(self._access),
            keepalive_timeout=HEADERS_WITHIN_S,
            lingering_time=_CLOSE_WITHIN_S,
            handle_signals=False,
            shutdown_timeout=_CLOSE_WITHIN_S,
            max_line_size=_MOST_LINE_BYTES,
            max_field_size=_MOST_LINE_BYTES,
        )
        await runner.setup()
        try:
            accepting = await asyncio.get_running_loop().create_server(
                lambda: _Arriving(runner, self._connections), sock=listener
            )
            try:
                yield
            finally:
                accepting.close()
        finally:
            await runner.cleanup()
            self._reads.close()
            await self._downloads.close()

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=_MOST_BODY_BYTES, middlewares=[self._guarded])
        application.on_response_prepare.append(_add_headers)
        application.on_shutdown.append(self._end_streams)
        for operation in OPERATIONS:
            if operation.method is Method.GET or self._can_steer:
                application.router.add_route(operation.method.value, API + operation.path, self._answering(operation))
        for stream in STREAMS:
            application.router.add_get(API + stream.path, self._following(stream))
        application.router.add_get(f"{API}/openapi.json", self._describe)
        application.router.add_get("/metrics", self._measure)
        for page in PAGES:
            if self._can_steer or not page.steers:
                application.router.add_route(page.method.value, page.path, self._showing(page))
        application.router.add_get(DOWNLOAD_PATH, self._downloads.answer, allow_head=False)
        application.router.add_get(_ASSETS + "{name}", _asset)
        return application

    # --- who may come in

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            response = self._refusal(request)
            if response is None:
                if not request.path.startswith(_ASSETS):  # which anybody gets
                    self._connections.let_in(request.protocol)
                response = await self._handled(request, handler)
        except web.HTTPException as error:
            response = _refused(request, error.status, error.reason)
        except HeadraceError as error:
            response = _failed(request, error)
        return response

    async def _handled(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if "token" in request.query and request.method == "GET":
            return self._let_in(request)
        return await handler(request)

    def _refusal(self, request: web.Request) -> web.StreamResponse | None:
        access, host = self._access, request.headers.get("Host", "")
        if not access.is_own_host(host):
            return _refused(request, 403, "This server is not known by that name. Open the address that it printed.")
        origin = request.headers.get("Origin")
        if origin is not None and not access.is_own_origin(origin, host):
            return _refused(request, 403, "Requests of other pages are not answered.")
        has_token = access.is_token(request.query.get("token", ""))
        if has_token or request.path.startswith(_ASSETS) or self._is_known(request):
            return None
        return _refused(request, 401, "Open the address that `headrace view` printed: it has the token in it.")

    def _is_known(self, request: web.Request) -> bool:
        if self._has_token(request):
            return True
        return self._access.is_cookie(request.cookies.get(self._access.cookie_name, ""))

    def _has_token(self, request: web.Request) -> bool:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._access.is_token(token)

    def _let_in(self, request: web.Request) -> web.StreamResponse:
        """Exchange the token for the cookie. A page that moves on by itself, not a redirect: a browser would not send
        the cookie with a redirect that another site's link began.
        """
        rest = [(name, value) for name, value in request.query.items() if name != "token"]
        # One slash at its beginning: two would be the name of another server.
        target = "/" + str(request.rel_url.with_query(rest)).lstrip("/\\")
        response = _html(rendered("let_in.html", target=target))
        response.set_cookie(self._access.cookie_name, self._access.cookie, httponly=True, samesite="Strict", path="/")
        return response

    # --- answering

    def _answering(self, operation: AnyOperation) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            given = {**request.query, **request.match_info}
            if operation.method is Method.POST:
                given |= await self._form(request)
            parameters = operation.parsed(given)
            run = self._reads.steer if operation.method is Method.POST else self._reads.run
            return _json(await run(lambda: operation.call(self._files, parameters), request.remote))

        return answer

    async def _form(self, request: web.Request) -> dict[str, Any]:
        """The fields of a steering request, which proves that it comes from the page itself or from a program that has
        the token.
        """
        try:
            async with asyncio.timeout(_BODY_WITHIN_S):
                fields = await _fields(request)
        except TimeoutError:
            raise web.HTTPRequestTimeout(reason="The request's body did not arrive in time.") from None
        proof = fields.pop(_FORM_PROOF, "")
        if not self._has_token(request) and not (isinstance(proof, str) and self._access.is_form_proof(proof)):
            raise web.HTTPForbidden(reason="Steering needs the token.")
        return fields

    def _following(self, stream: EventStream) -> Handler:
        async def tell(request: web.Request) -> web.StreamResponse:
            return await follow(request, stream, self._files, self._watches)

        return tell

    async def _describe(self, _: web.Request) -> web.StreamResponse:
        body = openapi_document(API, can_steer=self._can_steer)
        return web.Response(body=body, content_type="application/json")

    async def _measure(self, request: web.Request) -> web.StreamResponse:
        text = await self._reads.run(self._metrics.text, request.remote)
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})

    async def _end_streams(self, _: web.Application) -> None:
        self._watches.close()

    def _showing(self, page: HtmlPage) -> Handler:
        async def show(request: web.Request) -> web.StreamResponse:
            given = {**request.query, **request.match_info}
            if page.method is Method.POST:
                given |= await self._form(request)
            sent = self._sent_forms.sent(str(given.pop("once", "")))
            given |= {"proof": self._access.form_proof if self._can_steer else "", "once": new_number()}
            if page.method is Method.GET:
                return _html(await self._reads.run(lambda: page.show(self._files, given), request.remote))
            with sent:
                return _html(await self._reads.steer(lambda: page.show(self._files, given), request.remote))

        return show


async def _fields(request: web.Request) -> dict[str, Any]:
    """The fields of a body: a form or, of programs, an object in JSON."""
    if not request.can_read_body:
        return {}
    if request.content_type == "application/json" and request.path.startswith(API):
        try:
            return msgspec.json.decode(await request.read(), type=dict[str, str | int | float | bool | None])
        except msgspec.DecodeError as error:
            raise InvalidInput(f"The request's body is no object in JSON: {error}.", fix=_BODIES) from None
    if request.content_type not in _FORMS:
        raise InvalidInput(f"A body of type {request.content_type} cannot be read.", fix=_BODIES)
    try:
        posted = await request.post()
    except (ValueError, LookupError, RuntimeError, web.RequestPayloadError, HttpProcessingError):
        raise InvalidInput("The request's body is not the form that its headers say it is.", fix=_BODIES) from None
    return {name: value for name, value in posted.items() if isinstance(value, str)}


class _PageConnections:
    """The open connections, of which those are strangers that have not sent a request with the token yet. There is room
    for so many; a new one takes the place of the stranger that came first, so that connections that say nothing keep
    nobody out. aiohttp ends one whose headers do not come in time.
    """

    def __init__(self) -> None:
        self._strangers: dict[web.RequestHandler, asyncio.Transport] = {}

    def add(self, server: web.Server, transport: asyncio.Transport) -> web.RequestHandler | None:
        """The protocol of a new connection; None where there is no room."""
        held = server.connections
        self._strangers = {each: its for each, its in self._strangers.items() if each in held}
        if len(held) >= MOST_CONNECTIONS or len(self._strangers) >= MOST_STRANGERS:
            if not self._strangers:
                return None
            self._strangers.pop(next(iter(self._strangers))).abort()
        added = server()
        self._strangers[added] = transport
        return added

    def let_in(self, connection: web.RequestHandler) -> None:
        self._strangers.pop(connection, None)


class _Arriving(asyncio.Protocol):
    """Hands a connection on to its protocol, or ends it, when it is there: aiohttp counts it from then on."""

    def __init__(self, runner: web.AppRunner, connections: _PageConnections) -> None:
        assert runner.server is not None
        self._server = runner.server
        self._connections = connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        protocol = self._connections.add(self._server, transport)
        if protocol is None:
            transport.abort()
            return
        transport.set_protocol(protocol)
        protocol.connection_made(transport)


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


async def _asset(request: web.Request) -> web.StreamResponse:
    found = asset(request.match_info["name"])
    if found is None:
        raise web.HTTPNotFound
    body, content_type = found
    return web.Response(body=body, content_type=content_type, charset="utf-8")


def _failed(request: web.Request, error: HeadraceError) -> web.Response:
    match error:
        case TooBusy() | TooManyWatch():
            status = 503
        case FormSentTwice():
            status = 409
        case _:
            status = http_status(error)
    if request.path.startswith(API):
        return _json(error_reply(error), status)
    if is_download(request.path):  # what is saved as a file should not be a page
        return web.Response(text="\n".join(filter(None, (error.message, error.fix))) + "\n", status=status)
    return _html(rendered("error.html", message=error.message, fix=error.fix), status)


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html")


def _refused(request: web.Request, status: int, text: str) -> web.Response:
    if request.path.startswith(API):
        return _json(error_reply(HeadraceError(text)), status)
    return web.Response(text=f"{text}\n", status=status)


def _json(reply: msgspec.Struct, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(reply), status=status, content_type="application/json")
