"""The executors that the contract suite runs on. A new executor joins by a line here."""

from collections.abc import Callable
from typing import Any

from headrace.execute.contract import Executor
from headrace.execute.inline import InlineExecutor

EXECUTORS: dict[str, Callable[[list[dict[str, Any]]], Executor]] = {"inline": InlineExecutor}
