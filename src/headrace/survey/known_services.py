"""The services whose address and key are known, and which of them a model's name belongs to.

Covers: data only. Does not cover: reaching a service (models.services), or where keys are read (models.keys).
"""

from __future__ import annotations

from enum import Enum

import msgspec


class ModelProtocol(Enum):
    """The protocol of a service, in words. A member is named like its module in models/protocols/."""

    OPENAI_CHAT = "OpenAI's chat completions"
    ANTHROPIC_MESSAGES = "Anthropic's messages"


class Service(msgspec.Struct, frozen=True):
    """`base_url` is None where the user must give one, `key_env` where no key is needed."""

    protocol: ModelProtocol
    base_url: str | None
    key_env: str | None


COMPATIBLE = "openai_compatible"
SERVICES: dict[str, Service] = {
    "anthropic": Service(ModelProtocol.ANTHROPIC_MESSAGES, "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    "cerebras": Service(ModelProtocol.OPENAI_CHAT, "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "deepinfra": Service(ModelProtocol.OPENAI_CHAT, "https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"),
    "deepseek": Service(ModelProtocol.OPENAI_CHAT, "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "fireworks": Service(ModelProtocol.OPENAI_CHAT, "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "google": Service(
        ModelProtocol.OPENAI_CHAT, "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"
    ),
    "groq": Service(ModelProtocol.OPENAI_CHAT, "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "llama_cpp": Service(ModelProtocol.OPENAI_CHAT, "http://localhost:8080/v1", None),
    "mistral": Service(ModelProtocol.OPENAI_CHAT, "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "ollama": Service(ModelProtocol.OPENAI_CHAT, "http://localhost:11434/v1", None),
    "openai": Service(ModelProtocol.OPENAI_CHAT, "https://api.openai.com/v1", "OPENAI_API_KEY"),
    COMPATIBLE: Service(ModelProtocol.OPENAI_CHAT, None, None),
    "openrouter": Service(ModelProtocol.OPENAI_CHAT, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "together": Service(ModelProtocol.OPENAI_CHAT, "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "vllm": Service(ModelProtocol.OPENAI_CHAT, "http://localhost:8000/v1", None),
    "xai": Service(ModelProtocol.OPENAI_CHAT, "https://api.x.ai/v1", "XAI_API_KEY"),
}

_PREFIXES = {
    "openai": ("gpt-", "chatgpt-", "ft:gpt-", "o1", "o3", "o4"),
    "anthropic": ("claude-",),
}
# Of models without an address only: one with a base_url is a server of the user's own, whatever runs there.
_PREFIXES_WITHOUT_ADDRESS = {
    "deepseek": ("deepseek-chat", "deepseek-reasoner"),
    "google": ("gemini-",),
    "mistral": ("codestral-", "magistral-", "ministral-", "mistral-", "open-mistral-", "pixtral-"),
    "xai": ("grok-",),
}
_EDSL_NAMES = {"deep_infra": "deepinfra", "open_router": "openrouter", "openai_v2": "openai"}
# For `Model.available` and "did you mean": services have many more, and any name is sent to its service as written.
WELL_KNOWN_MODELS = (
    "chatgpt-4o-latest", "claude-3-5-haiku-latest", "claude-3-7-sonnet-latest", "claude-haiku-4-5", "claude-opus-4-1",
    "claude-opus-4-5", "claude-sonnet-4-0", "claude-sonnet-4-5", "deepseek-chat", "deepseek-reasoner",
    "gemini-2.0-flash", "gemini-2.5-flash", "gemini-2.5-flash-lite", "gemini-2.5-pro", "gpt-3.5-turbo", "gpt-4",
    "gpt-4-turbo", "gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano", "gpt-4o", "gpt-4o-mini", "gpt-5", "gpt-5-mini",
    "gpt-5-nano", "grok-3", "grok-3-mini", "grok-4", "local", "ministral-8b-latest", "mistral-large-latest",
    "mistral-medium-latest", "mistral-small-latest", "o1", "o3", "o3-mini", "o4-mini", "test",
)  # fmt: skip


def service_of(name: str, *, has_address: bool) -> str:
    """The service that a model's name implies; else the name itself, which `models.services` refuses."""
    tables = (_PREFIXES,) if has_address else (_PREFIXES, _PREFIXES_WITHOUT_ADDRESS)
    for service, prefixes in (item for table in tables for item in table.items()):
        if name.startswith(prefixes):
            return service
    return COMPATIBLE if has_address and name not in {"test", "local"} else name


def known_as(service_name: str | None) -> str | None:
    """A service's name here, given that or EDSL's name for it."""
    return service_name if service_name is None else _EDSL_NAMES.get(service_name, service_name)


def key_names() -> list[str]:
    """The environment variables that hold keys of known services."""
    return sorted(service.key_env for service in SERVICES.values() if service.key_env is not None)
