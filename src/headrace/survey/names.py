"""What a name in a text or in a rule stands for.

    agent.x, scenario.x                       a field of the interview's agent or scenario; agent["first name"]
    q.answer, q.comment                       what an earlier question was answered; q.answer[0], q.answer.key
    q.question_text, q.question_options       an earlier question, as it was asked
    x                                         the one of these that the plan has: plan.fitting resolves it once, over
                                              all fields of its lists, and the survey stores the result

In a rule a bare question name is its answer. Does not cover: which fields the lists have (plan.fitting).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast

import msgspec

from headrace.survey.agent import NAME, unnamed
from headrace.survey.values import Fields

# What a text may name: "agent" and "scenario" with their fields, and each answered question with its parts.
Context: TypeAlias = dict[str, dict[str, Any]]
# What each bare name stands for: {"city": "scenario.city"}.
ResolvedNames: TypeAlias = Mapping[str, str]

DATA_ROOTS = ("agent", "scenario")
QUESTION_PARTS = ("answer", "comment", "question_text", "question_options")
AGENT_NAME, STORED_AGENT_NAME = "agent.name", f"agent.{NAME}"


class NameUse(msgspec.Struct, frozen=True):
    """A name that a text or a rule uses, and `where` it stands."""

    where: str
    name: str
    is_in_rule: bool = False

    @property
    def root(self) -> str:
        return self.name.partition(".")[0]

    @property
    def part(self) -> str:
        """What follows the root: "answer" of `mood.answer[0]`; empty for a bare name."""
        return self.name.partition(".")[2].partition(".")[0]


def spelled_out(name: str, resolved: ResolvedNames) -> str:
    """The name with its prefix: `scenario.city` for `city`."""
    if name in resolved:
        return resolved[name]
    root, dot, rest = name.partition(".")
    if name.startswith(AGENT_NAME + ".") and AGENT_NAME in resolved:
        return resolved[AGENT_NAME] + name.removeprefix(AGENT_NAME)
    return f"{resolved[root]}{dot}{rest}" if root in resolved else name


def named_agent(agent: Fields, place: int, resolved: ResolvedNames) -> Fields:
    """An agent's row as texts and rules see it: where one of them names `agent.name`, an agent without a name has that
    of its place, as in results.
    """
    if resolved.get(AGENT_NAME) != STORED_AGENT_NAME or agent.get(NAME) is not None:
        return agent
    return {**agent, NAME: unnamed(place)}


def name_getter(name: str, resolved: ResolvedNames | None = None) -> Callable[[Context], Any]:
    """Look a dotted name up in a context; None where the data has no such field."""
    root, _, field = spelled_out(name, resolved or {}).partition(".")
    if not field:
        return lambda context: _answer_or_group(context.get(root))
    if "." in field:
        return lambda context: value_at(context.get(root, {}), field)
    return lambda context: context.get(root, {}).get(field)


def value_at(held: Any, path: str) -> Any:
    """The value at a dotted path in nested dicts; a field may have dots in its own name."""
    if not isinstance(held, dict):
        return None
    fields = cast("dict[str, Any]", held)
    if path in fields:
        return fields[path]
    first, _, rest = path.partition(".")
    return value_at(fields.get(first), rest) if rest else None


def _answer_or_group(held: dict[str, Any] | None) -> Any:
    return held.get("answer") if held is not None else None


class Aliases:
    """The bare names that some texts use, put beside the prefixed ones for rendering."""

    def __init__(self, names: Iterable[str], resolved: ResolvedNames) -> None:
        self._fields: list[tuple[str, str, str]] = []
        self._has_agent_name = False
        for name in sorted({spelling for used in names for spelling in (used, used.partition(".")[0])}):
            if name == AGENT_NAME or name.startswith(AGENT_NAME + "."):
                self._has_agent_name |= AGENT_NAME in resolved
            elif name in resolved:
                root, _, field = resolved[name].partition(".")
                self._fields.append((name, root, field))

    def __bool__(self) -> bool:
        return bool(self._fields) or self._has_agent_name

    def added(self, context: Context) -> dict[str, Any]:
        """The context and the bare names; a field that this agent or scenario lacks stays undefined."""
        made: dict[str, Any] = dict(context)
        for alias, root, field in self._fields:
            group = context[root]
            if field in group:
                made[alias] = group[field]
        if self._has_agent_name and NAME in context["agent"]:
            made["agent"] = {**context["agent"], "name": context["agent"][NAME]}
        return made
