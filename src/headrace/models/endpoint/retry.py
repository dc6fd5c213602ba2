"""When a call that failed is tried again. Covers: how long it waits, and when that ends. It never sleeps itself."""

from __future__ import annotations

from headrace.limits import RetryLimits


def wait_before_retry_s(attempts: int, asked_wait_s: float | None, limits: RetryLimits, jitter: float) -> float | None:
    """Seconds until the next attempt after `attempts` failed ones, None where that was the last.

    The service's own wish comes first. Otherwise the wait doubles, and `jitter` (0 to 1) spreads it over its upper
    half, so that what failed together does not come back together.
    """
    if attempts >= limits.call_attempts:
        return None
    if asked_wait_s is not None:
        return min(asked_wait_s, limits.longest_wait_s)
    wait_s = min(limits.first_wait_s * 2 ** (attempts - 1), limits.longest_wait_s)
    return wait_s * (0.5 + jitter / 2)
