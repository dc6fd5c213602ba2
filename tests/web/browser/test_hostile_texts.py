"""Texts that want to be more than text, in answers, names, traits, fields and file names, as Chromium shows them."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from headrace.web.exported_page import export_page
from tests.web.browser.addresses import ADDRESSES
from tests.web.browser.chromium import Visit, in_chromium, visiting
from tests.web.hostile import SCRIPTS, hostile_run
from tests.web.running_page import RunningPage

_NAMES = [f"{text.replace('/', '_')}.run" for text in SCRIPTS if "\x1b" not in text]
_OF_RUNS = [path for path in ADDRESSES.values() if "{ended}" in path]
# What no page of ours has; a Content-Security-Policy would stop some of it, and it must not even be there.
_FOREIGN = "img, iframe, object, embed, svg script, form[action^=http], [onerror], [onload], a[href^=javascript]"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("hostile")
    first = hostile_run(place / _NAMES[0])
    for name in _NAMES[1:]:
        shutil.copyfile(first, place / name)
    return place


@pytest.fixture
def page(place: Path) -> Iterator[RunningPage]:
    with RunningPage(place) as page:
        yield page


def assert_only_text(visit: Visit, title: str) -> None:
    assert visit.window.title() == title
    assert visit.window.locator(_FOREIGN).count() == 0
    assert visit.trouble == []


@in_chromium
def test_hostile_names_of_files_are_text(chromium: Browser, page: RunningPage):
    with visiting(chromium, page) as visit:
        visit.enter("/")
        assert_only_text(visit, "Runs · Headrace")
        shown = visit.window.inner_text("main")
        assert all(" ".join(name.split()) in " ".join(shown.split()) for name in _NAMES)


@pytest.mark.parametrize("path", _OF_RUNS)
@in_chromium
def test_hostile_texts_of_a_run_are_text(path: str, chromium: Browser, page: RunningPage):
    file = next(each for each in page.api("/runs")["files"] if each["name"] == _NAMES[1])
    with visiting(chromium, page) as visit:
        visit.enter(path.format(ended=file["id"]))
        assert_only_text(visit, f"{' '.join(_NAMES[1].split())} · Headrace")


@in_chromium
def test_hostile_texts_in_an_exported_file_are_text(chromium: Browser, place: Path, tmp_path: Path):
    for number, name in enumerate(_NAMES[:3]):
        export_page(place / name, tmp_path / f"{number}.html")
        with visiting(chromium, "file://") as visit:
            visit.open(str(tmp_path / f"{number}.html"))
            assert_only_text(visit, f"{' '.join(name.split())} · Headrace")
            assert SCRIPTS[0] in visit.window.inner_text("main")
