import re

from tests.docs.documents import ROOT

DOCUMENT = (ROOT / "SECURITY.md").read_text("utf-8")
PROMISES = DOCUMENT.partition("## What is promised")[2].partition("## What is not promised")[0]


def test_every_promise_names_tests_that_exist():
    paragraphs = [text for text in PROMISES.split("\n\n") if text.startswith("**")]
    assert len(paragraphs) > 5
    for paragraph in paragraphs:
        named = re.findall(r"`(tests/[\w/.]+)`", paragraph)
        assert named, f"no test is named: {paragraph}"
        for path in named:
            assert (ROOT / path).exists(), path


def test_the_document_says_what_is_not_promised_and_how_to_report():
    assert "## What is not promised" in DOCUMENT
    assert "## How to report" in DOCUMENT
