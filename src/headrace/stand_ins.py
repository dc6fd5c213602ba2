"""Classes and verbs of EDSL that belong to its hosted service or to another design: named, and refused with words.

Covers: `Cache`, which may be made and passed to `run`; `Coop`, `Dataset` and `Notebook`, which may be imported; and the
verbs that EDSL's objects share: `push`, `pull` and their kin. Does not cover: names that are not there at all
(headrace.missing_names), parameters of `run` (headrace.edsl_names).
"""

from __future__ import annotations

from typing import Any, NoReturn

from headrace.errors import NotInHeadrace
from headrace.missing_names import ExplainedNames

_NO_SERVICE = "Headrace has no hosted service."
_CACHE = "One response cache on this machine serves all runs: cache=False does without it, fresh=True starts over."


class Cache:
    """Stands for the response cache, which all runs on this machine share. It may be passed to `run`."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):  # copy, pickle and notebooks ask for these, and take no for an answer
            raise AttributeError(name)
        raise NotInHeadrace(f"Cache.{name} belongs to EDSL: a cache is no object to be filled here.", fix=_CACHE)

    def __len__(self) -> NoReturn:
        raise NotInHeadrace("The entries of a Cache cannot be counted here.", fix=_CACHE)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "Cache()"


class Coop:
    """EDSL's hosted service. There is none here."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise NotInHeadrace(
            f"Coop belongs to EDSL's service. {_NO_SERVICE}",
            fix="A run file is one file: copy it with `headrace copy`, and open it with Results.open(path).",
        )


class Notebook:
    """A notebook kept by EDSL's hosted service. There is none here."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise NotInHeadrace(
            f"Notebook belongs to EDSL's service. {_NO_SERVICE}", fix="Keep the .ipynb file beside its run file."
        )


class Dataset:
    """A table of EDSL's. Results have its verbs themselves."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise NotInHeadrace(
            "There is no Dataset here: results have its verbs.",
            fix="For a table of your own make a ScenarioList([{...}, ...]), or a data frame.",
        )


class HostedVerbs(ExplainedNames):
    """The verbs of EDSL's objects that need its service. Each says so, with the way to do it here, and so does the
    error for a name that is not there at all.
    """

    __slots__ = ()

    def push(self, *_: Any, **__: Any) -> NoReturn:
        raise _refused("push", f"{_KEEP} to share it.")

    @classmethod
    def pull(cls, *_: Any, **__: Any) -> NoReturn:
        raise _refused("pull", f"{_KEEP}, and read it with {cls.__name__}.{_LOADS.get(cls.__name__, 'load')}(path).")

    def patch(self, *_: Any, **__: Any) -> NoReturn:
        raise _refused("patch", f"{_KEEP}, and save it again.")

    def humanize(self, *_: Any, **__: Any) -> NoReturn:
        raise _refused("humanize", "Models answer here: people's answers have to come from elsewhere.")


_KEEP = "A survey, a list and a job are saved with save(path), results are in their run file: pass that file on"
_LOADS = {"Results": "open"}


def _refused(verb: str, fix: str) -> NotInHeadrace:
    return NotInHeadrace(f"{verb}() belongs to EDSL's service. {_NO_SERVICE}", fix=fix)
