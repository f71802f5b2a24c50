"""All identities of one work, computed offline and explained. Pure."""

from dataclasses import dataclass
from typing import Any

from maestropy.trace.errors import BadQuestion
from maestropy.trace.output import json_text, printable
from maestropy.trace.work import identities
from maestropy.wire import identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What somebody knows; None is what they do not."""

    source: str | None = None
    consumer: str | None = None
    work_name: str | None = None
    resource_id: str | None = None
    broker_host: str | None = None
    sequence: str | None = None
    applied_work: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What follows from it."""

    resource_id: str | None
    hub_hash: str | None
    applied_work: str | None
    time: str | None
    explanations: tuple[str, ...]
    contradictions: tuple[str, ...]


def compute(given: Given) -> Card:
    """Compute all that can be computed."""
    explanations: list[str] = []
    contradictions: list[str] = []
    resource_id = _resource_id(given, explanations, contradictions)
    hub_hash = _hub_hash(given, explanations)
    applied = given.applied_work or (f"{hub_hash}-{resource_id}" if hub_hash and resource_id else None)
    if given.applied_work is not None:
        resource_id, hub_hash = _taken_apart(given, resource_id, hub_hash, contradictions)
        explanations.append("an AppliedManifestWork is named HUBHASH-WORKNAME; the work's name is the resource ID")
    elif applied:
        explanations.append("applied work = hub hash, a hyphen, the resource ID")
    time = None
    if given.sequence is not None:
        moment = identities.time_of_sequence(given.sequence)
        time = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        explanations.append("time = (sequence >> 22) + 1288834974657 ms: the agent's clock when it sent the status")
    if not explanations:
        raise BadQuestion("give --source, --consumer and --work-name, or --broker-host, --sequence or --applied-work")
    return Card(
        resource_id=resource_id,
        hub_hash=hub_hash,
        applied_work=applied,
        time=time,
        explanations=tuple(explanations),
        contradictions=tuple(contradictions),
    )


def _resource_id(given: Given, explanations: list[str], contradictions: list[str]) -> str | None:
    parts = {"--source": given.source, "--consumer": given.consumer, "--work-name": given.work_name}
    missing = [flag for flag, value in parts.items() if not value]
    if len(missing) == len(parts):
        return given.resource_id
    if missing:
        raise BadQuestion(f"{', '.join(missing)} missing: a resource ID is made of source, consumer and work name")
    computed = identity.resource_id(given.source or "", namespace=given.consumer or "", name=given.work_name or "")
    hashed = f"{given.source}-{identity.GROUP_RESOURCE}-{given.consumer}-{given.work_name}"
    explanations.append(f'resource ID = uuid5(OID namespace, "{hashed}")')
    if given.resource_id and given.resource_id != computed:
        contradictions.append(f"--resource-id {given.resource_id} is not it: another part, or an id a client chose")
    return computed


def _hub_hash(given: Given, explanations: list[str]) -> str | None:
    if given.broker_host is None:
        return None
    explanations.append(f'hub hash = sha256("{given.broker_host}"), the broker\'s address as the agent has it')
    return identities.hub_hash(given.broker_host)


def _taken_apart(
    given: Given, resource_id: str | None, hub_hash: str | None, contradictions: list[str]
) -> tuple[str | None, str | None]:
    parts = identities.split_applied_work_name(given.applied_work or "")
    if parts is None:
        raise BadQuestion("--applied-work is no name of an AppliedManifestWork: 64 hex digits, a hyphen, a work's name")
    if hub_hash is not None and hub_hash != parts[0]:
        contradictions.append("its hub hash is not that of --broker-host")
    if resource_id is not None and resource_id != parts[1] and given.work_name != parts[1]:
        contradictions.append("its work is not the one given")
    return resource_id or parts[1], parts[0]


def as_json(card: Card) -> str:
    """Return the card for programs."""
    model: dict[str, Any] = {
        "resourceId": card.resource_id,
        "hubHash": card.hub_hash,
        "appliedManifestWork": card.applied_work,
        "time": card.time,
        "explanations": list(card.explanations),
        "contradictions": list(card.contradictions),
    }
    return json_text(model)


def as_text(card: Card) -> str:
    """Return the card for people."""
    named = {
        "Resource ID": card.resource_id,
        "Hub hash": card.hub_hash,
        "AppliedManifestWork": card.applied_work,
        "Time": card.time,
    }
    lines = [f"{name + ':':<21}{printable(value)}" for name, value in named.items() if value]
    lines += [f"  {printable(each)}" for each in card.explanations]
    lines += [f"✗ {printable(each)}" for each in card.contradictions]
    return "\n".join(lines) + "\n"
