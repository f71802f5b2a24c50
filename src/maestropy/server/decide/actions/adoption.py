"""Plan the adoption of a database: what becomes of the works that a data-safety hold keeps. Pure."""

from collections.abc import Sequence

from maestropy.server.decide.actions import plans
from maestropy.server.decide.actions.plans import Plan


def plan(
    consumer: str, *, why: str, work_count: int, works: Sequence[str], absent_works: Sequence[str], pin: str
) -> Plan:
    """Plan to let the database decide about `works`; of them, `absent_works` are those that it does not have."""
    present, absent = len(works) - len(absent_works), len(absent_works)
    effects = (
        f"End the hold of consumer {consumer} on {plans.counted(work_count)} ({why}): the database decides.",
        f"Apply {plans.counted(present)} that the database has.",
        f"Delete the objects of {plans.counted(absent)} that it does not have, after the eviction grace period.",
    )
    warnings = []
    if work_count > len(works):
        warnings.append(f"{plans.counted(work_count - len(works))} more are held, and the agent has not named them")
    return Plan(
        action="adopt",
        consumer=consumer,
        effects=effects,
        warnings=tuple(warnings),
        work_count=work_count,
        pin=pin,
    )
