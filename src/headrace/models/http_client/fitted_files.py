"""Lets only files through that the service takes by their size, as each file's own choice has it: refused, or smaller.

Does not cover: the limits (survey.files.size_limits), or making pictures smaller (survey.files.smaller_pictures).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec

from headrace.errors import FileUnusable
from headrace.models.provider import Request
from headrace.survey.files.marks import PromptFile
from headrace.survey.files.size_limits import SizeLimit
from headrace.survey.files.smaller_pictures import SMALLER


@asynccontextmanager
async def fitted(request: Request, limit: SizeLimit) -> AsyncGenerator[Request]:
    """The request with smaller copies of pictures that are too large; FileUnusable where that is not wanted."""
    taken: list[PromptFile] = []  # as many as a text names files
    try:
        files: list[PromptFile] = []
        for each in request.files:
            why = limit.why_too_large(each.file)
            if why is None:
                files.append(each)
                continue
            if not (each.file.is_image() and each.file.too_large == "resize"):
                raise FileUnusable(each.file.path, why)
            most_bytes, most_pixels = limit.most_bytes(each.file), limit.most_pixels
            smaller = await asyncio.to_thread(SMALLER.take, each.file, most_bytes, most_pixels)
            taken.append(each)
            files.append(PromptFile(each.start, each.end, smaller))
        yield msgspec.structs.replace(request, files=tuple(files)) if taken else request
    finally:
        for each in taken:
            SMALLER.give_back(each.file, limit.most_bytes(each.file))
