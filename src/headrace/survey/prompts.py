"""Writes the system prompt: the persona of an agent.

Does not cover: the question's own prompt (survey.asked_question).
"""

from __future__ import annotations

from headrace.survey.agent import INSTRUCTION, NAME
from headrace.survey.people.agent_settings import PLAIN, SETTINGS, AgentSettings
from headrace.survey.values import Fields
from headrace.survey.wording.own_wording import OURS, Wording

_NOT_TRAITS = frozenset({NAME, INSTRUCTION, SETTINGS})


def persona(agent: Fields, settings: AgentSettings = PLAIN, wording: Wording = OURS) -> str:
    """The system prompt of an agent: its instruction and its traits; none for an agent that has neither.

    A trait whose name begins with an underscore is left out. CannotRender where the agent's own template does not fit.
    """
    if settings is PLAIN:
        traits = "\n".join([f"{n}: {value}" for n, value in agent.items() if n not in _NOT_TRAITS and n[:1] != "_"])
    else:
        traits = settings.traits_text({n: v for n, v in agent.items() if n not in _NOT_TRAITS and n[:1] != "_"})
    instruction = agent.get(INSTRUCTION) or (wording.persona if traits else "")
    return f"{instruction}\n\n{traits}" if traits else str(instruction)
