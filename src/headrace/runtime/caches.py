"""What this process holds only to be quicker, and can make again. Covers: letting go of it where memory is short.

SQLite's pages (up to 4 MB a connection), compiled texts, compiled regular expressions. Not the source lines that
tracebacks show: those of a notebook's cells cannot be read again. Does not cover: replies that earlier runs paid for,
which are on disk (store.response_cache).
"""

from __future__ import annotations

import re

from headrace.store.connections import release_pages
from headrace.survey.templates import forget_compiled


def drop_caches() -> None:
    release_pages()
    forget_compiled()
    re.purge()
