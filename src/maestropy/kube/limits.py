"""Decide when the next request may go: a token bucket, as Kubernetes clients use, and how often to try again. Pure."""

from dataclasses import dataclass, replace

from maestropy.kube.errors import KubeError, ServerError, TooManyRequests


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """So many requests at once (`burst`), then so many a second (`qps`). A qps of zero means no limit."""

    qps: float
    burst: int
    tokens: float
    """What is left at `filled_at`; below zero when requests already wait."""
    filled_at: float


def full_bucket(*, qps: float, burst: int, now: float) -> Bucket:
    """Return a bucket nobody took from yet."""
    return Bucket(qps=qps, burst=burst, tokens=float(burst), filled_at=now)


def take(bucket: Bucket, *, now: float) -> tuple[Bucket, float]:
    """Take one request's token; return the bucket after it and the seconds to wait before sending."""
    if bucket.qps <= 0:
        return bucket, 0.0
    elapsed = max(0.0, now - bucket.filled_at)
    tokens = min(bucket.burst, bucket.tokens + elapsed * bucket.qps) - 1
    return replace(bucket, tokens=tokens, filled_at=now), max(0.0, -tokens / bucket.qps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often and how long one request is tried again when the API server asks for it."""

    attempts: int = 4
    longest_wait: float = 10.0
    """Seconds. Whoever is told to wait longer hears of it instead, and can do other work meanwhile."""


PATIENT = Patience()


def wait_before_retry(error: KubeError, *, attempt: int, patience: Patience) -> float | None:
    """Return the seconds after which attempt number `attempt` (from 1) may be followed by another, or None.

    Only the API server's own invitation counts: without Retry-After the caller's back-off knows better.
    """
    if not isinstance(error, TooManyRequests | ServerError) or attempt >= patience.attempts:
        return None
    if error.retry_after is None or error.retry_after > patience.longest_wait:
        return None
    return error.retry_after
