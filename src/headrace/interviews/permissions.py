"""Decides whether a run may start: what it may contact, which keys it may read, and how much it may use.

    who wrote the model                  contacted and paid for
    the program, or `headrace run`       yes; remembered for the plan, so that `headrace resume` does not ask
    a run file (Job.open, resume)        only what this user has confirmed for that plan, or allows now

A run file's budgets are claims too. Limits of money and tokens that are looser than those confirmed for its plan have
to be given, whoever wrote the models: a file that was changed lifts no limit that its user has set. Without
confirmation its memory is at most this host's default, and its workers are left out.
Does not cover: asking a person (cli.confirm_prompt), or where it is remembered (store.confirmations).
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import structs

from headrace.display import counted
from headrace.errors import NotConfirmed, OptionError, Spelled, spelled
from headrace.limits import Budgets, MemoryLimits, RunOptions
from headrace.memory.budget import memory_limits
from headrace.models.contacts import Contact, contacts_of, not_confirmed
from headrace.plan.identity import Identity
from headrace.plan.job import Job
from headrace.plan.prices import price_of
from headrace.store.confirmations import Confirmed, is_within, read_confirmed, remember
from headrace.store.run_file.keeping.stored_keep import Keeping
from headrace.store.run_file.stored_job.kept_budgets import LIMITS, KeptBudgets
from headrace.store.run_file.stored_job.stored_lists import KeptPlan, read_kept_plan
from headrace.units import NONE, format_dollars

_NOTHING = Confirmed(interviews=-1, max_cost=0.0, max_tokens_total=0)


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """`budgets` are as the file will keep them, `confirmed` what this user says yes to by starting the run.

    `keeping` is what the file keeps, None where it is new. `unconfirmed` and `loosened` must be empty for the run to
    start: contacts, and limits of the file that are looser than those `confirmed_before`.
    `claimed_by` is the file that names those contacts: the run file, or a study.
    """

    path: Path
    claimed_by: Path
    plan: str
    budgets: Budgets
    keeping: Keeping | None
    unconfirmed: tuple[Contact, ...]
    loosened: tuple[str, ...]
    confirmed_before: Confirmed
    confirmed: Confirmed

    @classmethod
    def of(cls, job: Job, path: Path, options: RunOptions) -> Permissions:
        if options.fresh and job.origin == path:
            raise OptionError(f"{path} holds the job itself: it cannot start over in there.", fix="Give another path.")
        identity, file = job.identity(), None if options.fresh else read_kept_plan(path)
        if file is not None and file.identity != identity and not options.extend:
            file = None  # of another job: about to be refused as such, whatever its budgets are
        held = KeptBudgets(Budgets()) if file is None else file.budgets
        kept, budgets, plan = held.budgets, held.of_run(options, path), identity.digest
        contacts = [contact for model in job.called_models for contact in contacts_of(model)]
        interviews = _planned(job, identity, options.n or 1, file)
        before = read_confirmed(plan) or _NOTHING
        confirmed = Confirmed(
            contacts=tuple(dict.fromkeys((contact.address, contact.key) for contact in contacts)),
            prices=_given_prices(job),
            interviews=interviews,
            max_cost=budgets.max_cost,
            max_tokens_total=budgets.max_tokens_total,
            memory=_confirmed_memory(options, budgets, before),
            workers=_confirmed_workers(options, budgets, before),
        )
        is_as_before = (
            interviews <= before.interviews
            and set(confirmed.prices) <= set(before.prices)
            and _has_confirmed_limits(options, kept, before)
        )
        limits = _confirmed_limits(plan, file)
        claims = [Path(model.origin.path) for model in job.called_models if model.origin is not None]
        return cls(
            path=path,
            claimed_by=claims[0] if claims else path,
            plan=plan,
            budgets=budgets,
            keeping=None if file is None else file.keeping,
            unconfirmed=_unconfirmed(job, before.contacts if is_as_before else ()),
            loosened=() if limits is None else _loosened(options, kept, limits),
            confirmed_before=limits or _NOTHING,
            confirmed=confirmed,
        )

    @property
    def asks_for_memory(self) -> bool:
        """Whether the file asks for more memory than this host's default, which this user has not confirmed."""
        return self._has_unconfirmed_memory and self._asked_bytes() > memory_limits(None).budget_bytes

    def check(self) -> None:
        """Raise NotConfirmed, before a key is read, where this user has to be asked."""
        if self.unconfirmed:
            raise not_confirmed(self.claimed_by, self.unconfirmed, self._claims(), self.to_give)
        if self.loosened:
            raise NotConfirmed(
                f"{self.path} has looser limits than you confirmed for this job here: {self.loosened_words}.",
                path=self.path,
                allow=[],
                fix=Spelled(
                    f"If that is meant: give{self.to_give}.", command=f"If that is meant:{self.to_give.command}"
                ),
            )

    def accepting(self, options: RunOptions) -> RunOptions:
        """The options of a user who was shown the file's looser limits and said yes: as if they had been given."""
        return structs.replace(options, **{name: self._written(name) for name in self.loosened})

    @property
    def to_give(self) -> Spelled:
        """The options by which a user says yes to the file's looser limits; empty where there are none."""
        each = [spelled(f" {{{name}}}", **{name: self._written(name)}) for name in self.loosened]
        return Spelled(",".join(each), command="".join(one.command for one in each))

    @property
    def loosened_words(self) -> str:
        """The file's looser limits, each beside the one that this user has confirmed; empty where there are none."""
        return ", ".join(
            f"{_in_words(name, getattr(self.budgets, name))}"
            f" where you confirmed {_in_words(name, getattr(self.confirmed_before, name))}"
            for name in self.loosened
        )

    def memory_limits(self) -> MemoryLimits:
        limits = memory_limits(self.budgets.memory)
        if not self._has_unconfirmed_memory:
            return limits
        return structs.replace(limits, budget_bytes=min(limits.budget_bytes, memory_limits(None).budget_bytes))

    def remember(self) -> None:
        """Before the file is written: a kill must not leave a file that its own user is asked about."""
        if self.confirmed.contacts or self.confirmed.memory or self.confirmed.workers:
            remember(self.plan, self.confirmed)

    @property
    def _has_unconfirmed_memory(self) -> bool:
        return self.budgets.memory is not None and self.budgets.memory not in self.confirmed.memory

    def _claims(self) -> str:
        """How far a run would go, in words."""
        limits = [_in_words(name, getattr(self.budgets, name)) for name in LIMITS]
        words = [counted(self.confirmed.interviews, "interview"), *limits, *self.budgets.sizes_in_words]
        return f" A run of it has {', '.join([*words, *(f'prices of {price}' for price in self.confirmed.prices)])}."

    def _written(self, name: str) -> float | str:
        """A limit of the file as a user gives it."""
        value = getattr(self.budgets, name)
        return NONE if value is None else value

    def _asked_bytes(self) -> int:
        return memory_limits(self.budgets.memory).budget_bytes


def _planned(job: Job, identity: Identity, n: int, file: KeptPlan | None) -> int:
    """How many interviews the plan has. What the file knows is not counted again: conditions may take long."""
    if file is not None and file.identity == identity and n <= file.iterations:
        return file.interviews
    return max(job.interviews(n), 0 if file is None else file.interviews)


def _unconfirmed(job: Job, confirmed: tuple[tuple[str, str | None], ...]) -> tuple[Contact, ...]:
    """List the contacts of models from a file that this user has allowed neither now nor earlier."""
    return tuple(
        contact
        for model in job.called_models
        if model.origin is not None
        for contact in contacts_of(model)
        if not contact.is_among(model.origin.allowed) and (contact.address, contact.key) not in confirmed
    )


def _has_confirmed_limits(options: RunOptions, kept: Budgets, before: Confirmed) -> bool:
    """Whether the file's limits of money and tokens, where none is given now, are no looser than those confirmed."""
    return not _loosened(options, kept, before)


def _loosened(options: RunOptions, kept: Budgets, before: Confirmed) -> tuple[str, ...]:
    """The names of the limits that are not given now, and that `kept` has looser than they were confirmed."""
    return tuple(
        name
        for name in LIMITS
        if getattr(options, name) is None and not is_within(getattr(kept, name), getattr(before, name))
    )


def _confirmed_limits(plan: str, file: KeptPlan | None) -> Confirmed | None:
    """What this user has confirmed for the plan, or for the smaller one that it extends. None where that is nothing, or
    where the file is new: a program that gives no limit then wants none, and a limit of a file only makes that less.
    """
    return None if file is None else read_confirmed(plan) or read_confirmed(file.identity.digest)


def _in_words(limit: str, value: float | None) -> str:
    if value is None:
        return f"no limit of {'cost' if limit == 'max_cost' else 'tokens'}"
    return f"at most {format_dollars(value) if limit == 'max_cost' else counted(int(value), 'token')}"


def _given_prices(job: Job) -> tuple[str, ...]:
    """Put given prices into words. They are no part of a plan's identity, and a file with a free model has no limit."""
    priced = [(model.name, price_of(model)) for model in job.called_models if model.parameters.get("price") is not None]
    return tuple(
        dict.fromkeys(
            f"{ascii(name)[1:-1]} at ${price.input:g} in, ${price.output:g} out and"
            f" ${price.input if price.cached is None else price.cached:g} cached a million tokens"
            for name, price in priced
            if price is not None
        )
    )


def _confirmed_memory(options: RunOptions, budgets: Budgets, before: Confirmed) -> tuple[str | int, ...]:
    """The memory as written, where the user gave it now or has confirmed it for this plan."""
    written = budgets.memory
    is_confirmed = written is not None and (options.memory is not None or written in before.memory)
    return (written,) if is_confirmed and written is not None else ()


def _confirmed_workers(options: RunOptions, budgets: Budgets, before: Confirmed) -> int:
    workers = budgets.workers or 0
    return workers if options.workers is not None or workers <= before.workers else 0
