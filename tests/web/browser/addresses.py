"""Every page there is, as its address: a new page is one more line here."""

from tests.web.browser.shown_place import Shown

ADDRESSES = {
    "runs": "/",
    "a run that ended": "/runs/{ended}",
    "a run that goes on": "/runs/{going}",
    "failures": "/runs/{ended}/failures",
    "no failures": "/runs/{going}/failures",
    "pausing": "/runs/{going}/steer/pause",
    "changing the concurrency": "/runs/{going}/steer/concurrency",
}


def address(name: str, shown: Shown) -> str:
    return ADDRESSES[name].format(ended=shown.ended, going=shown.going, engine=shown.engine)
