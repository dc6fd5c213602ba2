"""Which files a service takes. Covers: data only, by protocol.

Does not cover: the content parts themselves (models.protocols).
"""

from __future__ import annotations

from headrace.errors import FileUnusable
from headrace.survey.files.file_store import FileStore
from headrace.survey.files.file_types import PDF, FileKind
from headrace.survey.known_services import SERVICES, ModelProtocol

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_SOUNDS = frozenset({"audio/wav", "audio/x-wav", "audio/mpeg"})
_BY_PROTOCOL = {
    ModelProtocol.OPENAI_CHAT: _PICTURES | _SOUNDS | {PDF},
    ModelProtocol.ANTHROPIC_MESSAGES: _PICTURES | {PDF},
}
_WITHOUT_FILES = frozenset({"local"})


def why_not_taken(service_name: str, file: FileStore) -> str | None:
    """Why models of this service take no such file; None where they do, or where that is for the model to say."""
    if service_name in _WITHOUT_FILES:
        return f"the {service_name} model reads text alone, and {file.name} is a {_called(file)}"
    service = SERVICES.get(service_name)
    if service is None:  # the test model, and functions of the user's own
        return None
    if file.mime_type in _BY_PROTOCOL[service.protocol]:
        return None
    return f"{service.protocol.value} take no {_called(file)}, and {file.name} is one"


def instead_of(file: FileStore, field: str) -> str:
    """What to do about a file that a model does not take; `field` is how a text names it."""
    match file.kind:
        case FileKind.IMAGE if file.mime_type in _PICTURES:
            return 'Use a model that takes it; where it is too large, FileStore(path, too_large="resize").'
        case FileKind.IMAGE:
            return "Save it as PNG or JPEG."
        case FileKind.PDF | FileKind.TEXT:
            return f"Use a model that takes it, or the file's text: {{{{ {field}.text }}}}."
        case FileKind.AUDIO | FileKind.VIDEO:
            return "Use a model that takes it, or a text of what is said in it."
        case FileKind.OTHER:
            return "Save it as a PDF, a picture or a text; a table's rows are a list: ScenarioList.from_file(path)."


def refuse_untaken(service_name: str, file: FileStore) -> None:
    """Raises FileUnusable where models of this service take no such file."""
    if (why := why_not_taken(service_name, file)) is not None:
        raise FileUnusable(file.path, why)


def _called(file: FileStore) -> str:
    return f"{file.kind.value} ({file.mime_type})" if file.kind is not FileKind.PDF else "PDF"
