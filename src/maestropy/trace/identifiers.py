"""Compute and explain the identifiers of one work offline. Pure."""

from dataclasses import dataclass
from typing import Any

from maestropy.trace.errors import InvalidArguments
from maestropy.trace.output import json_text, printable
from maestropy.trace.work import identities
from maestropy.wire.works import resource_id as identity


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenIdentifiers:
    """The identifiers that the user has; None for unknown ones."""

    source: str | None = None
    consumer: str | None = None
    work_name: str | None = None
    resource_id: str | None = None
    broker_host: str | None = None
    sequence: str | None = None
    applied_work: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifiers:
    """What follows from it."""

    resource_id: str | None
    hub_hash: str | None
    applied_work: str | None
    time: str | None
    explanations: tuple[str, ...]
    contradictions: tuple[str, ...]


def compute(known: GivenIdentifiers) -> Identifiers:
    """Compute all that can be computed."""
    explanations: list[str] = []
    contradictions: list[str] = []
    resource_id = _resource_id(known, explanations, contradictions)
    hub_hash = _hub_hash(known, explanations)
    applied = known.applied_work or (f"{hub_hash}-{resource_id}" if hub_hash and resource_id else None)
    if known.applied_work is not None:
        resource_id, hub_hash = _taken_apart(known, resource_id, hub_hash, contradictions)
        explanations.append("an AppliedManifestWork is named HUBHASH-WORKNAME; the work's name is the resource ID")
    elif applied:
        explanations.append("applied work = hub hash, a hyphen, the resource ID")
    time = None
    if known.sequence is not None:
        moment = identities.time_of_sequence(known.sequence)
        time = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        explanations.append("time = (sequence >> 22) + 1288834974657 ms: the agent's clock when it sent the status")
    if not explanations:
        raise InvalidArguments(
            "give --source, --consumer and --work-name, or --broker-host, --sequence or --applied-work"
        )
    return Identifiers(
        resource_id=resource_id,
        hub_hash=hub_hash,
        applied_work=applied,
        time=time,
        explanations=tuple(explanations),
        contradictions=tuple(contradictions),
    )


def _resource_id(known: GivenIdentifiers, explanations: list[str], contradictions: list[str]) -> str | None:
    parts = {"--source": known.source, "--consumer": known.consumer, "--work-name": known.work_name}
    missing = [flag for flag, value in parts.items() if not value]
    if len(missing) == len(parts):
        return known.resource_id
    if missing:
        raise InvalidArguments(f"{', '.join(missing)} missing: a resource ID is made of source, consumer and work name")
    computed = identity.resource_id(known.source or "", namespace=known.consumer or "", name=known.work_name or "")
    hashed = f"{known.source}-{identity.GROUP_RESOURCE}-{known.consumer}-{known.work_name}"
    explanations.append(f'resource ID = uuid5(OID namespace, "{hashed}")')
    if known.resource_id and known.resource_id != computed:
        contradictions.append(f"--resource-id {known.resource_id} is not it: another part, or an id a client chose")
    return computed


def _hub_hash(known: GivenIdentifiers, explanations: list[str]) -> str | None:
    if known.broker_host is None:
        return None
    explanations.append(f'hub hash = sha256("{known.broker_host}"), the broker\'s address as the agent has it')
    return identities.hub_hash(known.broker_host)


def _taken_apart(
    known: GivenIdentifiers, resource_id: str | None, hub_hash: str | None, contradictions: list[str]
) -> tuple[str | None, str | None]:
    parts = identities.split_applied_work_name(known.applied_work or "")
    if parts is None:
        raise InvalidArguments(
            "--applied-work is not the name of an AppliedManifestWork: 64 hex digits, a hyphen, a work's name"
        )
    if hub_hash is not None and hub_hash != parts[0]:
        contradictions.append("its hub hash is not that of --broker-host")
    if resource_id is not None and resource_id != parts[1] and known.work_name != parts[1]:
        contradictions.append("its work is not the one given")
    return resource_id or parts[1], parts[0]


def as_json(card: Identifiers) -> str:
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


def as_text(card: Identifiers) -> str:
    """Return the card for people."""
    named = {
        "Resource ID": card.resource_id,
        "Hub hash": card.hub_hash,
        "AppliedManifestWork": card.applied_work,
        "Time": card.time,
    }
    lines = [f"{name + ':':<21}{printable(value)}" for name, value in named.items() if value]
    lines += [f"  {printable(explanation)}" for explanation in card.explanations]
    lines += [f"✗ {printable(contradiction)}" for contradiction in card.contradictions]
    return "\n".join(lines) + "\n"
