"""Every page in Chromium, wide and narrow, light and dark, while a run goes on."""

import pytest
from playwright.sync_api import Browser

from tests.web.browser.addresses import ADDRESSES, address
from tests.web.browser.axe import AxeRules, axe
from tests.web.browser.chromium import Theme, in_chromium, visiting
from tests.web.browser.shown_place import Shown

__all__ = ["axe"]

LOOKS: list[tuple[int, Theme]] = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
RULED: list[tuple[int, Theme]] = [(1280, "light"), (390, "dark")]  # the rules take half a second each time


@pytest.mark.parametrize("name", ADDRESSES)
@in_chromium
def test_a_page_fits_its_window_and_meets_no_trouble(name: str, chromium: Browser, shown: Shown, axe: AxeRules):
    with visiting(chromium, shown.page) as visit:
        visit.enter(address(name, shown))
        for look in LOOKS:
            visit.look(*look)
            assert visit.overflow() <= 0, look
            assert look not in RULED or axe.broken_in(visit.window) == [], look
        assert visit.trouble == []


@pytest.mark.parametrize("name", ADDRESSES)
@in_chromium
def test_a_page_can_be_read_without_scripts(name: str, chromium: Browser, shown: Shown):
    with visiting(chromium, shown.page, scripts=False) as visit:
        visit.enter(address(name, shown))
        assert visit.window.locator("h1").count() == 1
        assert visit.trouble == []


def test_the_rules_of_accessibility_can_be_had(axe: AxeRules):
    if axe.why_none:
        pytest.skip(axe.why_none)
    assert "axe v" in axe.source[:40]
