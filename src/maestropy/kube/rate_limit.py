"""Decide when a request may be sent: the token bucket of client-go, and retries after throttling. Pure."""

from dataclasses import dataclass, replace

from maestropy.kube.errors import KubeError, ServerError, TooManyRequests


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBucket:
    """`burst` requests at once, then `qps` requests a second; a qps of zero means no limit."""

    qps: float
    burst: int
    tokens: float
    """Tokens at `filled_at`; negative when requests already wait."""
    filled_at: float


def full_bucket(*, qps: float, burst: int, now: float) -> TokenBucket:
    """Return a full bucket."""
    return TokenBucket(qps=qps, burst=burst, tokens=float(burst), filled_at=now)


def take(bucket: TokenBucket, *, now: float) -> tuple[TokenBucket, float]:
    """Take one token; return the new bucket and the seconds to wait before sending."""
    if bucket.qps <= 0:
        return bucket, 0.0
    elapsed = max(0.0, now - bucket.filled_at)
    tokens = min(bucket.burst, bucket.tokens + elapsed * bucket.qps) - 1
    return replace(bucket, tokens=tokens, filled_at=now), max(0.0, -tokens / bucket.qps)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryLimits:
    """How often and how long a throttled request is retried."""

    attempts: int = 4
    longest_wait: float = 10.0
    """Seconds. A longer Retry-After is an error for the caller, which can do other work meanwhile."""


DEFAULT_RETRIES = RetryLimits()


def wait_before_retry(error: KubeError, *, attempt: int, retries: RetryLimits) -> float | None:
    """Return the seconds after which attempt number `attempt` (from 1) may be followed by another, or None.

    Only a Retry-After of the API server causes a retry here; without it the backoff of the caller decides.
    """
    if not isinstance(error, TooManyRequests | ServerError) or attempt >= retries.attempts:
        return None
    if error.retry_after is None or error.retry_after > retries.longest_wait:
        return None
    return error.retry_after
