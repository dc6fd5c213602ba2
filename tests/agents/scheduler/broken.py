"""How a broken rule is told."""


class Broken(AssertionError):
    """A rule was broken."""


def check(holds: object, rule: str) -> None:
    if not holds:
        raise Broken(rule)
