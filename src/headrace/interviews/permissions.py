"""Decides whether a run may start: what it may contact, which keys it may read, and how much it may use.

    who wrote the model                  contacted and paid for
    the program, or `headrace run`       yes; remembered for the plan, so that `headrace resume` does not ask
    a run file (Job.open, resume)        only what this user has confirmed for that plan, or allows now

A run file's budgets are claims too: limits of money and tokens that are looser than those confirmed are asked for
again, and without confirmation its memory is at most this host's default, and its workers are left out.
Does not cover: asking a person (cli.confirm_prompt), or where it is remembered (store.confirmations).
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import structs

from headrace.display import counted
from headrace.errors import OptionError
from headrace.limits import Budgets, MemoryLimits, RunOptions
from headrace.memory.budget import memory_limits
from headrace.models.contacts import Contact, contacts_of, not_confirmed
from headrace.plan.identity import Identity
from headrace.plan.job import Job
from headrace.plan.prices import price_of
from headrace.store.confirmations import Confirmed, is_within, read_confirmed, remember
from headrace.store.run_file.keeping.stored_keep import Keeping
from headrace.store.run_file.stored_job.stored_lists import KeptPlan, read_kept_plan
from headrace.units import format_dollars

_NOTHING = Confirmed(interviews=-1, max_cost=0.0, max_tokens_total=0)


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """`budgets` are as the file will keep them, `confirmed` what this user says yes to by starting the run.

    `keeping` is what the file keeps, None where it is new. `unconfirmed` must be empty for the run to start.
    `claimed_by` is the file that names those contacts: the run file, or a study.
    """

    path: Path
    claimed_by: Path
    plan: str
    budgets: Budgets
    keeping: Keeping | None
    unconfirmed: tuple[Contact, ...]
    confirmed: Confirmed

    @classmethod
    def of(cls, job: Job, path: Path, options: RunOptions) -> Permissions:
        if options.fresh and job.origin == path:
            raise OptionError(f"{path} holds the job itself: it cannot start over in there.", fix="Give another path.")
        identity, file = job.identity(), None if options.fresh else read_kept_plan(path)
        if file is not None and file.identity != identity and not options.extend:
            file = None  # of another job: about to be refused as such, whatever its budgets are
        kept = Budgets() if file is None else file.budgets
        budgets, plan = options.budgets(kept), identity.digest
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
        claims = [Path(model.origin.path) for model in job.called_models if model.origin is not None]
        return cls(
            path=path,
            claimed_by=claims[0] if claims else path,
            plan=plan,
            budgets=budgets,
            keeping=None if file is None else file.keeping,
            unconfirmed=_unconfirmed(job, before.contacts if is_as_before else ()),
            confirmed=confirmed,
        )

    @property
    def asks_for_memory(self) -> bool:
        """Whether the file asks for more memory than this host's default, which this user has not confirmed."""
        return self._has_unconfirmed_memory and self._asked_bytes() > memory_limits(None).budget_bytes

    def check(self) -> None:
        """Raise NotConfirmed, before a key is read, where this user has to be asked."""
        if self.unconfirmed:
            raise not_confirmed(self.claimed_by, self.unconfirmed, self._claims())

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
        cost, tokens = self.budgets.max_cost, self.budgets.max_tokens_total
        limits = [
            "no limit of cost" if cost is None else f"at most {format_dollars(cost)}",
            "no limit of tokens" if tokens is None else f"at most {counted(tokens, 'token')}",
        ]
        words = [counted(self.confirmed.interviews, "interview"), *limits, *self.budgets.sizes_in_words]
        return f" A run of it has {', '.join([*words, *(f'prices of {price}' for price in self.confirmed.prices)])}."

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
    return (options.max_cost is not None or is_within(kept.max_cost, before.max_cost)) and (
        options.max_tokens_total is not None or is_within(kept.max_tokens_total, before.max_tokens_total)
    )


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
