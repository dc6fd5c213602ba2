"""Every page there is, as its address: a new page is one more line here."""

from tests.web.browser.shown_place import Shown

ADDRESSES = {
    "runs": "/",
    "a run that ended": "/runs/{ended}",
    "a run that goes on": "/runs/{going}",
    "a table": "/runs/{ended}/table",
    "a table with a filter and an order": "/runs/{ended}/table?filter=interview.ordinal+%3C+30&sort=-answer.mood",
    "a filter with a mistake": "/runs/{ended}/table?filter=agent.agee+%3C+30",
    "a table that grows": "/runs/{going}/table?columns=agent.*,answer.*",
    "an interview": "/runs/{ended}/interviews/0",
    "an interview that failed": "/runs/{ended}/interviews/1?filter=interview.ordinal+%3C+30",
    "questions": "/runs/{ended}/questions",
    "questions that are counted while they come in": "/runs/{going}/questions",
    "questions split by the model": "/runs/{ended}/questions?by=model.model&filter=interview.ordinal+%3C+30",
    "failures": "/runs/{ended}/failures",
    "no failures": "/runs/{going}/failures",
    "an engine": "/engines/{engine}",
    "an engine's agent runs": "/engines/{engine}/runs",
    "an engine's events": "/engines/{engine}/events",
    "an agent run": "/engines/{engine}/runs/1",
    "an agent run that failed": "/engines/{engine}/runs/4",
    "pausing": "/runs/{going}/steer/pause",
    "changing the concurrency": "/runs/{going}/steer/concurrency",
}


def address(name: str, shown: Shown) -> str:
    return ADDRESSES[name].format(ended=shown.ended, going=shown.going, engine=shown.engine)
