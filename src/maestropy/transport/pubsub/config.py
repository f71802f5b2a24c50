"""Read the configuration file of the Pub/Sub connection: `--message-broker-config-file`, `--workload-source-config`.

YAML or JSON with the keys, defaults and error texts of the Go Maestro. `PUBSUB_EMULATOR_HOST` in the environment means
an emulator without TLS and credentials, as for Google's own clients, unless the file disables TLS itself.

| case | result |
|---|---|
| unknown key | a note; `insecure`, which deployments write, is one |
| `disableTLS` | plain text and no credentials, with `endpoint` only |
| `maxOutstandingMessages`, `maxOutstandingBytes` negative | as if absent; for the Go programs no limit |
| `maxOutstandingBytes` absent | 64 MiB; the Go programs receive up to 1 GB |
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from maestropy.flags import SettingsError, document
from maestropy.transport.pubsub.endpoint import GLOBAL_TARGET, Keepalive, Names, PubsubEndpoint, ReceiveLimits

EMULATOR_VARIABLE = "PUBSUB_EMULATOR_HOST"

Role = Literal["source", "agent"]

_EXAMPLE = "projectID: my-project"
_KEYS = frozenset(
    {
        "projectID",
        "endpoint",
        "disableTLS",
        "credentialsFile",
        "topics",
        "subscriptions",
        "keepaliveSettings",
        "receiveSettings",
    }
)
_LABELS = {
    "sourceEvents": "source events",
    "sourceBroadcast": "source broadcast",
    "agentEvents": "agent events",
    "agentBroadcast": "agent broadcast",
}
_KEEPALIVE_KEYS = frozenset({"time", "timeout", "permitWithoutStream"})
_RECEIVE_KEYS = frozenset(
    {
        "maxExtension",
        "maxDurationPerAckExtension",
        "minDurationPerAckExtension",
        "maxOutstandingMessages",
        "maxOutstandingBytes",
        "numGoroutines",
    }
)
_PROJECT = re.compile(r"[a-z][a-z0-9-]*[a-z0-9]")
_TOPIC = "^projects/{project}/topics/(sourceevents|agentevents|sourcebroadcast|agentbroadcast)$"
_SUBSCRIPTION = (
    "^projects/{project}/subscriptions/(sourceevents-[a-z0-9-]+|agentevents-[a-z0-9-]+|"
    "sourcebroadcast-[a-z0-9-]+|agentbroadcast-[a-z0-9-]+)$"
)
_COMBINATION = (
    "invalid topic/subscription combination: "
    "for source, required topics: 'sourceEvents', 'sourceBroadcast'; "
    "required subscriptions: 'agentEvents', 'agentBroadcast'; "
    "for agent, required topics: 'agentEvents', 'agentBroadcast'; "
    "required subscriptions: 'sourceEvents', 'sourceBroadcast'"
)
# Limits of Pub/Sub for an acknowledgement deadline.
_LEASE_SECONDS = (10, 600)
_MOST = 2**31 - 1
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+)(?::(?P<port>[0-9]{1,5}))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class PubsubConfig:
    """The endpoint, and notes for the log."""

    endpoint: PubsubEndpoint
    notes: tuple[str, ...] = ()
    """Warnings for the operator, one sentence each."""


def read(path: Path, *, flag: str, role: Role, environ: Mapping[str, str]) -> PubsubConfig:
    """Read the file that `flag` names, for a server (`source`) or an agent."""
    return _config(document.read(path, flag=flag, example=_EXAMPLE), role=role, environ=environ)


def parse(content: bytes, *, origin: str, role: Role, environ: Mapping[str, str]) -> PubsubConfig:
    """Parse the content of a file; `origin` names the file in errors."""
    return _config(document.load(content, origin=origin, example=_EXAMPLE), role=role, environ=environ)


def _config(section: document.Section, *, role: Role, environ: Mapping[str, str]) -> PubsubConfig:
    origin = section.origin
    project = section.text("projectID")
    # The order of the checks, and each text before a semicolon, are those of the Go programs.
    _check_project(project, origin=origin)
    if section.switch("disableTLS") and not section.text("endpoint"):
        raise SettingsError(
            f"{origin}: endpoint must be specified when tls is disabled; write endpoint: host:port of the emulator"
        )
    topics, subscriptions = _names(section, "topics"), _names(section, "subscriptions")
    problems = list(_problems(topics, subscriptions, project=project, role=role))
    if problems:
        text = ", ".join(problems) if len(problems) == 1 else f"[{', '.join(problems)}]"
        missing = " and ".join(_missing(topics, subscriptions, role=role))
        raise SettingsError(f"{origin}: {text}" + (f"; set {missing}" if missing else ""))
    own, other = ("source", "agent") if role == "source" else ("agent", "source")
    target, is_secure = _target(section, environ)
    endpoint = PubsubEndpoint(
        project=project,
        topics=Names(events=topics[f"{own}Events"], broadcast=topics[f"{own}Broadcast"]),
        subscriptions=Names(events=subscriptions[f"{other}Events"], broadcast=subscriptions[f"{other}Broadcast"]),
        target=target,
        is_secure=is_secure,
        credentials_file=section.path("credentialsFile"),
        keepalive=_keepalive(section.section("keepaliveSettings")),
        receive=_receive(section.section("receiveSettings")),
    )
    return PubsubConfig(endpoint=endpoint, notes=tuple(_notes(section, endpoint)))


def _check_project(project: str, *, origin: str) -> None:
    if not project:
        raise SettingsError(f"{origin}: projectID is required; write the ID of the Google Cloud project")
    if not 6 <= len(project) <= 30:
        raise SettingsError(f"{origin}: projectID must be 6-30 characters long, got {len(project)} characters")
    if _PROJECT.fullmatch(project) is None:
        raise SettingsError(
            f'{origin}: projectID "{project}" is invalid: must start with a lowercase letter, contain only lowercase '
            "letters, numbers, and hyphens, and cannot end with a hyphen"
        )


def _names(section: document.Section, kind: str) -> dict[str, str]:
    names = section.section(kind)
    texts = {key: names.text(key) for key in _LABELS}
    if not any(texts.values()):
        raise SettingsError(f"{section.origin}: the {kind} must be set; write the full names below `{kind}:`")
    return texts


def _problems(
    topics: Mapping[str, str], subscriptions: Mapping[str, str], *, project: str, role: Role
) -> Iterator[str]:
    if _missing(topics, subscriptions, role=role):
        yield _COMBINATION
    for names, pattern, noun in ((topics, _TOPIC, "topic"), (subscriptions, _SUBSCRIPTION, "subscription")):
        expected = pattern.format(project=re.escape(project).replace(r"\-", "-"))
        for key, label in _LABELS.items():
            if names[key] and re.search(expected.replace("$", r"\Z"), names[key]) is None:
                yield f'invalid {label} {noun} "{names[key]}", it should match `{expected}`'


def _missing(topics: Mapping[str, str], subscriptions: Mapping[str, str], *, role: Role) -> list[str]:
    """Return the keys that a process of this role needs and that are not set."""
    other = "agent" if role == "source" else "source"
    missing = [f"topics.{role}{kind}" for kind in ("Events", "Broadcast") if not topics[role + kind]]
    return missing + [
        f"subscriptions.{other}{kind}" for kind in ("Events", "Broadcast") if not subscriptions[other + kind]
    ]


def _target(section: document.Section, environ: Mapping[str, str]) -> tuple[str, bool]:
    """Return the address and whether it has TLS."""
    endpoint, emulator = section.text("endpoint"), environ.get(EMULATOR_VARIABLE, "")
    name = f"{section.origin}: endpoint"
    if section.switch("disableTLS"):
        return _address(endpoint, name=name, is_secure=False), False
    if emulator:
        return _address(emulator, name=EMULATOR_VARIABLE, is_secure=False), False
    return (_address(endpoint, name=name, is_secure=True) if endpoint else GLOBAL_TARGET), True


def _address(text: str, *, name: str, is_secure: bool) -> str:
    """Return `host:port`; `https://host`, which upstream documents, and `http://host:port` without TLS are the same."""
    scheme, default_port = ("https://", "443") if is_secure else ("http://", "")
    parts = _ADDRESS.fullmatch(text.removeprefix(scheme).removesuffix("/"))
    port = (parts["port"] or default_port) if parts else ""
    if parts is None or not port or not 1 <= int(port) <= 65535:
        raise SettingsError(f"{name} cannot be used; write host:port, without a scheme")
    return f"{parts['host']}:{port}"


def _keepalive(section: document.Section) -> Keepalive:
    if section.is_empty:
        return Keepalive()
    return Keepalive(
        seconds=section.seconds("time", default=0.0),
        timeout_seconds=section.seconds("timeout", default=0.0) or Keepalive().timeout_seconds,
        without_calls=section.switch("permitWithoutStream"),
    )


def _receive(section: document.Section) -> ReceiveLimits:
    default = ReceiveLimits()
    shortest, longest = _LEASE_SECONDS
    least = section.seconds("minDurationPerAckExtension", default=0.0) or shortest
    most = section.seconds("maxDurationPerAckExtension", default=0.0) or longest
    lease = min(max(default.lease_seconds, least), most)
    return ReceiveLimits(
        max_messages=_limit(section, "maxOutstandingMessages", default=default.max_messages),
        max_bytes=_limit(section, "maxOutstandingBytes", default=default.max_bytes),
        streams=section.integer("numGoroutines", default=0, most=100) or default.streams,
        lease_seconds=round(min(max(lease, shortest), longest)),
        max_lease_seconds=section.seconds("maxExtension", default=0.0) or default.max_lease_seconds,
    )


def _limit(section: document.Section, name: str, *, default: int) -> int:
    """Return a limit; a negative one, which for the Go programs means no limit, is the default, to bound the memory."""
    limit = section.integer(name, default=0, least=-_MOST, most=_MOST)
    return limit if limit > 0 else default


def _notes(section: document.Section, endpoint: PubsubEndpoint) -> Iterator[str]:
    origin = section.origin
    for name in section.unknown(_KEYS):
        yield f"{origin}: {name} is not a setting of the Pub/Sub driver and is ignored"
    for level, known in (
        ("topics", frozenset(_LABELS)),
        ("subscriptions", frozenset(_LABELS)),
        ("keepaliveSettings", _KEEPALIVE_KEYS),
        ("receiveSettings", _RECEIVE_KEYS),
    ):
        for name in section.section(level).unknown(known):
            yield f"{origin}: {level}.{name} is not known and is ignored"
    if not endpoint.is_secure:
        yield f"{origin}: {endpoint.target} is used without TLS and without credentials, as for an emulator"
