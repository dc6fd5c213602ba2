"""Hosts as the scheduler sees them: slots, memory budgets, surveys, and what each kind of run needs of them. Pure.

    host             the slots and surveys that share a budget: whether a run may start here, entering, leaving
    host_budget      what runs and surveys are charged, and the room that is left
    survey_permits   how many interviews each survey may have in flight
    reservations     the memory that runs of each kind need, as learned
    needs            what one run needs of one host
    host_index       all hosts, and which of them a decision looks at
    silences         hosts that sent no reading for too long

Does not cover: which run starts (`placing`), which must stop (`preemption`).
"""
