"""Finds misspelt names when an agent is made: parameters that would become traits, codebooks that describe no trait.

Does not cover: names in texts and rules (plan.fitting).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache

from headrace.edsl_names import warn_once
from headrace.errors import ListError

# `instructions` and `trait` are nearer than this to a parameter, `portraits` and `surname` are not.
_NEAR_PARAMETER = 0.85
_NEAR_TRAIT = 0.8  # only a warning follows
_DIGITS = re.compile(r"\d")


def refuse_misspelt(name: str, parameters: Sequence[str], *, is_alone: bool) -> None:
    """Refuse a keyword argument that is hardly meant as a trait: nearly a parameter, or beside `traits=`."""
    near = _nearest(name, tuple(parameters), _NEAR_PARAMETER)
    if near is not None:
        fix = f"Did you mean {near!r}? If it is a trait, put it into traits={{{name!r}: ...}}."
        raise ListError(f"An agent has no parameter {name!r}.", fix=fix)
    if not is_alone:
        fix = f"Put it into traits, {{{name!r}: ...}}; the parameters are {', '.join(parameters)}."
        raise ListError(f"{name!r} is given beside traits=, and is no parameter of an agent.", fix=fix)


def warn_of_misspelt(codebook: Collection[str], traits: Collection[str]) -> None:
    """Warn, once, of each name in a codebook that is nearly that of a trait without a description.

    A codebook may describe more traits than an agent has: any other name is right.
    """
    described = set(codebook)
    unknown = tuple(name for name in codebook if name not in traits)
    for name in unknown:
        near = _nearest(name, tuple(trait for trait in traits if trait not in described), _NEAR_TRAIT)
        if near is not None:
            warn_once(f"The codebook describes {name!r}, which is no trait. Did you mean {near!r}?")


@lru_cache(maxsize=1_000)  # agents are mostly alike
def _nearest(name: str, known: tuple[str, ...], least: float) -> str | None:
    likely = [each for each in known if _may_be_near(name, each, least)]
    if not likely:
        return None
    import difflib  # 7 ms that only a likely mistake should cost

    return next(iter(difflib.get_close_matches(name, likely, n=1, cutoff=least)), None)


def _may_be_near(name: str, other: str, least: float) -> bool:
    """Whether they share enough letters; `q17` and `q117` differ in their numbers alone, and are two names."""
    shared = sum((Counter(name) & Counter(other)).values())
    is_numbered = _DIGITS.sub("", name) == _DIGITS.sub("", other)
    return not is_numbered and 2 * shared >= least * (len(name) + len(other))
