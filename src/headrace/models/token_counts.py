"""Reckons the tokens of a call that nobody has counted: four letters are one, and a file takes what its service says.

Covers: prompts before they are sent, and replies of services that tell no usage. Does not cover: a whole job before it
runs (plan.estimate).
"""

from __future__ import annotations

from math import ceil

from headrace.models.provider import Reply, Request
from headrace.survey.files.file_tokens import file_tokens
from headrace.survey.model import Model

_CHARS_PER_TOKEN = 4


def prompt_tokens(model: Model, request: Request) -> float:
    letters = len(request.system_prompt) + len(request.user_prompt)
    service, name = model.service_name, model.name
    of_files = sum(file_tokens(service, name, each.file) for each in request.files) if request.files else 0
    return letters / _CHARS_PER_TOKEN + of_files


def count_untold(model: Model, request: Request, reply: Reply) -> None:
    """Fill in the tokens that a service does not tell, or tells as none: limits of tokens and money have to hold there
    too.
    """
    if not reply.input_tokens:
        reply.input_tokens = ceil(prompt_tokens(model, request))
    if not reply.output_tokens:
        reply.output_tokens = ceil(len(reply.text) / _CHARS_PER_TOKEN)
