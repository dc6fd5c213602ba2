"""What the HTTP server logs, without the secrets of its addresses: a request that it cannot parse is quoted there."""

from __future__ import annotations

import logging
import traceback
from typing import Any

from headrace.web.access import Access

_log = logging.getLogger("headrace.page")


class PageLog(logging.LoggerAdapter[logging.Logger]):
    """A logger for aiohttp: the token, the cookie and the proof of forms are left out of its messages."""

    def __init__(self, access: Access) -> None:
        super().__init__(_log)
        self._secrets = (access.token, access.cookie, access.form_proof)

    def log(self, level: int, msg: object, *args: object, exc_info: Any = None, **_: Any) -> None:
        if not self.isEnabledFor(level):
            return
        text = str(msg) % args if args else str(msg)
        if isinstance(exc_info, BaseException):
            text += "\n" + "".join(traceback.format_exception(exc_info))
        elif exc_info:
            text += "\n" + traceback.format_exc()
        for secret in self._secrets:
            text = text.replace(secret, "...")
        self.logger.log(level, "%s", text)
