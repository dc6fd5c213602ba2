"""A host as the scheduler sees it: its slots, its memory budget, its surveys, and what each kind of run needs. Pure.

    host             the slots and surveys that share a budget: whether a run may start here, entering, leaving
    host_budget      what runs and surveys are charged, and the room that is left
    survey_permits   how many interviews each survey may have in flight
    reservations     the memory that runs of each kind need, as learned

Does not cover: which run starts (`placing`), which must stop (`preemption`).
"""
