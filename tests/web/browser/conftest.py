"""Chromium, and a place with runs of every kind, for the page's tests in a browser."""

from tests.web.browser.chromium import chromium
from tests.web.browser.shown_place import shown, shown_files

__all__ = ["chromium", "shown", "shown_files"]
