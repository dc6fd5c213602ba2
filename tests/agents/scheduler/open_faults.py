"""Histories that break a rule and wait to be understood, by seed: in each, the scheduler or the model world is wrong.

Each must still break its rule: the list can only shrink. Seeds mean the same only as long as histories are drawn alike;
where that changes, the faults have to be looked for again (`pytest --histories 100000`).
"""

OPEN_FAULTS = {
    29985: "a parent stops for its child where nothing computes",
    32275: "CRITICAL never waits behind others",
    36676: "CRITICAL never waits behind others",
    36916: "everything ends where memory comes back",
    41539: "everything ends, under pressure that never falls too",
    42705: "what had to go on with less is not counted as preempted for that",
    48378: "a parent stops for its child where nothing computes",
    49509: "nobody waits for memory that is free",
    53495: "one at a time",
    55523: "a higher priority does not wait for lower work",
    59439: "nobody waits for memory that is free",
    77963: "everything ends, under pressure that never falls too",
    81017: "only what used all that it was owed is set aside",
    81940: "one at a time",
    88413: "a parent stops for its child where nothing computes",
    96443: "everything ends, under pressure that never falls too",
    99906: "CRITICAL never waits behind others",
}
