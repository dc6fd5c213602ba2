"""What every template keeps to."""

import re
from pathlib import Path

import headrace.web

TEMPLATES = Path(headrace.web.__file__).parent / "templates"


def test_what_scrolls_can_be_scrolled_with_the_keyboard():
    scrolling = [
        opening
        for path in TEMPLATES.glob("*.html")
        for opening in re.findall(r"<div[^>]*\bscroll\b[^>]*>", path.read_text())
    ]
    assert scrolling
    assert [opening for opening in scrolling if 'tabindex="0"' not in opening] == []
