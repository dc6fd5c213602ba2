"""docs/engine.md says what is there."""

import inspect
import re

from headrace import Engine
from headrace.agents.scheduler.events import Notice
from headrace.limits import EndpointLimits, MemoryLimits, QueueLimits
from headrace.models.limiter import Reach
from headrace.store.engine_file.engine_schema import MOST_EVENTS_KEPT
from headrace.workers.limit_mechanisms import enforcement_layers
from tests.docs.documents import DOCS, ROOT, code_names, sections, tables

DOCUMENT = (DOCS / "engine.md").read_text("utf-8")
SECTIONS = {section.title: section.text for section in sections(DOCUMENT)}


def test_it_names_every_option_of_an_engine():
    (rows,) = tables(SECTIONS["Options"])
    assert [row[0].strip("`") for row in rows] == list(inspect.signature(Engine).parameters)[1:]


def test_its_levels_are_the_governors():
    limits = MemoryLimits(budget_bytes=1)
    rows, _ = tables(SECTIONS["When memory is short"])
    told = [[int(number) for number in re.findall(r"(\d+) %", row[0])] for row in rows]
    levels = [
        [limits.shrink_at, limits.shrink_until],
        [limits.preempt_at, limits.preempt_until],
        [limits.emergency_at, limits.emergency_until],
    ]
    assert told == [[70], *[[round(share * 100) for share in level] for level in levels]]
    assert f"{limits.calm_s:.0f} s below" in SECTIONS["When memory is short"]


def test_its_layers_are_the_engines():
    (rows,) = tables(SECTIONS["What holds a worker to its memory"])
    assert [row[0] for row in rows] == [name for name, _ in enforcement_layers()]


def test_it_names_every_event_and_no_other():
    (rows,) = tables(SECTIONS["Status and events"])
    named = {name for row in rows for name in code_names(row[0]) + code_names(row[1])}
    written = r'(?:record(?:_now|_failure)?\(|what = )\s*"([a-z][a-z ]+)"'
    folders = [ROOT / "src/headrace/agents" / name for name in ("engine", "nodes", "steering")]
    sources = [path.read_text("utf-8") for folder in folders for path in folder.glob("*.py")]
    recorded = {name for source in sources for name in re.findall(written, source)}
    recorded |= {notice.value for notice in Notice} | {reach.value for reach in Reach}
    assert recorded - named == set()
    assert {row[0].strip("`") for row in rows} <= recorded
    assert f"the latest {MOST_EVENTS_KEPT:,}" in SECTIONS["Status and events"]


def test_it_names_every_option_of_a_heartbeat_with_its_default():
    (rows,) = tables(SECTIONS["Heartbeats"])
    known = inspect.signature(Engine.every).parameters
    assert {row[0].strip("`") for row in rows} == set(known) - {"self", "seconds", "function", "name"}
    for row in rows[1:]:
        assert str(known[row[0].strip("`")].default) in row[1]
    assert QueueLimits().heartbeats_at_once == 2
    assert "At most two heartbeats run at once" in SECTIONS["Heartbeats"]


def test_it_says_how_many_calls_a_new_model_has_in_flight():
    first = EndpointLimits().first_concurrency
    assert f"up to {first} calls in flight" in SECTIONS["Models in an engine"]
    assert f"{first * 3 // 2} go out at first" in SECTIONS["Models in an engine"]


def test_links_between_documents_lead_to_headings():
    for path in DOCS.glob("*.md"):
        for place, heading in re.findall(r"\]\(([\w.-]*\.md)?#([\w-]+)\)", path.read_text("utf-8")):
            target = (DOCS / (place or path.name)).read_text("utf-8")
            headings = {_anchor(title) for title in re.findall(r"^#+ (.+)$", target, re.MULTILINE)}
            assert heading in headings, (path.name, place, heading)


def _anchor(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
