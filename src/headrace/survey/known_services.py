"""The services whose address and key are known, and which of them a model's name belongs to.

Covers: data only. Does not cover: reaching a service (models.services), or where keys are read (models.keys).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ModelProtocol(Enum):
    """The protocol of a service, in words. A member is named like its module in models/protocols/."""

    OPENAI_CHAT = "OpenAI's chat completions"
    ANTHROPIC_MESSAGES = "Anthropic's messages"


@dataclass(frozen=True, slots=True)
class Service:
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
# Only for "did you mean": services have many more, and any name is sent to its service as it is written.
WELL_KNOWN_MODELS = (
    "chatgpt-4o-latest", "claude-3-5-haiku-latest", "claude-3-7-sonnet-latest", "claude-haiku-4-5", "claude-opus-4-1",
    "claude-opus-4-5", "claude-sonnet-4-0", "claude-sonnet-4-5", "gpt-3.5-turbo", "gpt-4", "gpt-4-turbo", "gpt-4.1",
    "gpt-4.1-mini", "gpt-4.1-nano", "gpt-4o", "gpt-4o-mini", "gpt-5", "gpt-5-mini", "gpt-5-nano", "local", "o1", "o3",
    "o3-mini", "o4-mini", "test",
)  # fmt: skip


def service_of(name: str, *, has_address: bool) -> str:
    """The service that a model's name implies; else the name itself, which `models.services` refuses."""
    for service, prefixes in _PREFIXES.items():
        if name.startswith(prefixes):
            return service
    return COMPATIBLE if has_address and name not in {"test", "local"} else name


def key_names() -> list[str]:
    """The environment variables that hold keys of known services."""
    return sorted(service.key_env for service in SERVICES.values() if service.key_env is not None)
