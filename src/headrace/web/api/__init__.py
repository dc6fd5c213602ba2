"""The operations of the page, one module a subject. The API's routes, its OpenAPI document and the HTML pages are made
from this list.
"""

from __future__ import annotations

from headrace.web.api.agent_runs import AGENT_RUN, AGENT_RUNS, EMITTED
from headrace.web.api.engine_events import ENGINE_EVENTS, ENGINE_MEMORY
from headrace.web.api.engine_steering import ENGINE_STEERING
from headrace.web.api.engine_summary import ENGINE_SUMMARY
from headrace.web.api.failure_groups import FAILURE_GROUPS
from headrace.web.api.memory_line import MEMORY_LINE
from headrace.web.api.one_interview import ONE_INTERVIEW
from headrace.web.api.question_pictures import QUESTION_LIST, QUESTION_PICTURE
from headrace.web.api.run_columns import RUN_COLUMNS
from headrace.web.api.run_list import RUN_LIST
from headrace.web.api.run_money import RUN_MONEY
from headrace.web.api.run_rows import RUN_ROWS
from headrace.web.api.run_steering import STEERING
from headrace.web.api.run_summary import RUN_SUMMARY
from headrace.web.operations import AnyOperation

OPERATIONS: tuple[AnyOperation, ...] = (
    RUN_LIST,
    RUN_SUMMARY,
    MEMORY_LINE,
    RUN_MONEY,
    RUN_COLUMNS,
    RUN_ROWS,
    ONE_INTERVIEW,
    QUESTION_LIST,
    QUESTION_PICTURE,
    FAILURE_GROUPS,
    *STEERING.values(),
    ENGINE_SUMMARY,
    ENGINE_MEMORY,
    ENGINE_EVENTS,
    AGENT_RUNS,
    AGENT_RUN,
    EMITTED,
    *ENGINE_STEERING.values(),
)
