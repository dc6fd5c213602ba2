"""The HTML pages, one module a subject: which operations each page asks, and the template that it fills.

Does not cover: reading (web.api), or how templates are filled (web.html_pages).
"""

from __future__ import annotations

from headrace.web.pages.engine_pages import ENGINE_PAGES
from headrace.web.pages.failure_page import FAILURE_PAGES
from headrace.web.pages.html_page import HtmlPage
from headrace.web.pages.interview_page import INTERVIEW_PAGES
from headrace.web.pages.question_pages import QUESTION_PAGES
from headrace.web.pages.run_pages import RUN_PAGES
from headrace.web.pages.steering_pages import STEERING_PAGES
from headrace.web.pages.table_page import TABLE_PAGES

PAGES: tuple[HtmlPage, ...] = (
    *ENGINE_PAGES,
    *RUN_PAGES,
    *TABLE_PAGES,
    *INTERVIEW_PAGES,
    *QUESTION_PAGES,
    *FAILURE_PAGES,
    *STEERING_PAGES,
)
