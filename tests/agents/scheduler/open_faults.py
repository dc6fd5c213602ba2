"""Histories that break a rule and wait to be understood, by seed: in each, the scheduler or the model world is wrong.

Each must still break its rule: the list can only shrink. Seeds mean the same only as long as histories are drawn alike;
where that changes, the faults have to be looked for again (`pytest --histories 100000`).
"""

OPEN_FAULTS = {
    36916: "everything ends where memory comes back",
    41539: "everything ends, under pressure that never falls too",
    77963: "everything ends, under pressure that never falls too",
    96443: "everything ends, under pressure that never falls too",
}
