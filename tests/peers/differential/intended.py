"""The one list of differences that are intended; each names the line of docs/differences.md that gives the reason.

What is not explained here is a bug of ours.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.peers.differential.comparing import ABSENT, Mismatch

PAGE = Path(__file__).parents[3] / "docs" / "differences.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A line of the page, and the mismatches that it explains."""

    line: str
    """The first cell of the line."""
    explains: Callable[[Mismatch], bool]


def asks(words: str) -> Callable[[Mismatch], bool]:
    """Explain all about the cases whose name matches."""
    pattern = re.compile(words)
    return lambda found: pattern.search(found.case) is not None


def codes(go: str, ours: str, *, about: str = "") -> Callable[[Mismatch], bool]:
    """Explain all about REST calls that these codes answer."""
    pattern = re.compile(about)
    return lambda found: (
        found.case.startswith("rest ")
        and (found.whole_go.get("code"), found.whole_ours.get("code")) == (go, ours)
        and pattern.search(found.case) is not None
    )


def answered(*, go: str = "", ours: str = "") -> Callable[[Mismatch], bool]:
    """Explain all about cases in which some request was answered so; the patterns see its port, code and text."""
    left, right = re.compile(go), re.compile(ours)

    def explains(found: Mismatch) -> bool:
        if "answers" not in found.whole_go:
            return False
        pairs = zip(_told(found.whole_go["answers"]), _told(found.whole_ours["answers"]), strict=True)
        return any(one != other and left.search(one) and right.search(other) for one, other in pairs)

    return explains


def _told(answers: list[dict[str, Any]]) -> list[str]:
    return [f"{answer['to']} {answer['code']} {answer['text'] or ''}" for answer in answers]


def in_field(words: str, *, go: Any = None, ours: Any = None) -> Callable[[Mismatch], bool]:
    """Explain fields by name, and by what stands there if that is given."""
    pattern = re.compile(words)
    return lambda found: (
        pattern.search(found.field) is not None
        and (go is None or found.go == go)
        and (ours is None or found.ours == ours)
    )


def both(*parts: Callable[[Mismatch], bool]) -> Callable[[Mismatch], bool]:
    return lambda found: all(part(found) for part in parts)


def only_words(found: Mismatch) -> bool:
    """Tell whether both refused with the same code, and only the words differ."""
    if found.field != "answers[].text":
        return False
    return all(
        one["code"] == other["code"]
        for one, other in zip(found.whole_go["answers"], found.whole_ours["answers"], strict=True)
        if (one["text"], other["text"]) == (found.go, found.ours)
    )


def is_second_delete(found: Mismatch) -> bool:
    """Tell whether only the Go server announced a deletion again, or one of nothing."""
    go, ours = found.whole_go.get("events", []), found.whole_ours.get("events", [])
    return found.field in ("events", "to agent") and _without_repeats(go) == _without_repeats(ours) != go


def is_reminder(found: Mismatch) -> bool:
    """Tell whether only our server announced a deletion again."""
    go, ours = found.whole_go.get("events", []), found.whole_ours.get("events", [])
    return found.field in ("events", "to agent") and _without_repeats(go) == _without_repeats(ours) != ours


def _without_repeats(events: list[str]) -> list[str]:
    """Leave out deletions of what was not there or was being deleted."""
    kept: list[str] = []
    for event in events:
        if event != "Delete" or (kept and kept[-1] != "Delete"):
            kept.append(event)
    return kept


LIST = r"\?(search|orderBy)="
INTENDED: tuple[Difference, ...] = (
    # REST
    Difference(line="`GET /`", explains=asks(r"^rest GET /$")),
    Difference(line="unknown column in `search` or `orderBy`", explains=codes("500", "400", about=LIST)),
    Difference(
        line="text of an error about `search`", explains=both(codes("400", "400", about=LIST), in_field("reason"))
    ),
    Difference(
        line="`column->>'key'` in `search`", explains=codes("400", "200", about="(search=|or |and |\\()payload->>")
    ),
    Difference(
        line="`not` before a comparison, `not like`, and `''` for an apostrophe, in a `search` with JSON paths",
        explains=codes("400", "200", about=r"(?i)search=.*(\bnot\b.*(->>|@>)|(->>|@>).*(\bnot\b|''))"),
    ),
    Difference(
        line="a value in double quotes in a `search` with JSON paths",
        explains=codes("200", "400", about=r'search=.*->>.*"'),
    ),
    Difference(line="times in `search`", explains=codes("200", "400", about="created_at = ")),
    Difference(
        line="a fraction compared with `version`", explains=both(asks(r"version\s+!?= ?1\.5"), in_field("^list"))
    ),
    Difference(line="status of a new row", explains=asks("search=status is null")),
    Difference(line="`fields`", explains=asks("fields=")),
    Difference(line="wrong method on `/resource-bundles`", explains=codes("404", "405")),
    Difference(line="body `null` for a consumer", explains=asks("b'null'$")),
    Difference(line="text of an error about JSON", explains=both(codes("400", "400"), in_field(r"^body\.reason$"))),
    Difference(line="names of JSON members", explains=asks('"Name"')),
    Difference(line="invalid consumer name", explains=codes("500", "400", about="POST /consumers")),
    Difference(
        line="deleting a consumer that has resource bundles, PostgreSQL 18",
        explains=codes("500", "403", about="DELETE consumer"),
    ),
    Difference(line="paging of `/errors`", explains=asks(r"/errors\?")),
    # What is stored and sent
    Difference(
        line="unknown fields of a bundle and its options", explains=answered(go="publish OK", ours="unknown field")
    ),
    Difference(
        line="options and statuses as they were sent",
        explains=in_field(
            r"(status|data)\.(resourceStatus|conditions)$|manifest_configs|delete_option\.propagationPolicy"
        ),
    ),
    Difference(
        line="`status_events.resource_source`", explains=in_field(r"status events\[\]\.resource_source$", go="")
    ),
    Difference(line="integers beyond 2^53, `1.0`", explains=in_field(".", go=9007199254740992, ours=9007199254740993)),
    Difference(
        line="`subject`, `dataschema`",
        explains=both(in_field("subject$|dataschema"), asks("subject|dataschema|chance")),
    ),
    Difference(
        line="`subject`, `dataschema`", explains=answered(go="invalid value for (subject|dataschema): types.URI")
    ),
    Difference(line="`specversion` 0.3", explains=in_field("specversion$|spec_version$", go="0.3", ours="1.0")),
    Difference(line="content type of an event without data", explains=in_field("contenttype$", go=ABSENT)),
    Difference(line="data in `text_data`", explains=asks("^create, data as text$")),
    Difference(line="empty `metadata`", explains=in_field(r"^rest\.metadata\.creationTimestamp$", ours=ABSENT)),
    # Spec requests
    Difference(line="text of a rejection", explains=only_words),
    Difference(line="the same event twice (same id)", explains=answered(go="maestro-6", ours=r"publish OK")),
    Difference(
        line="a field twice in a bundle or its options", explains=answered(go="publish OK", ours="duplicate field")
    ),
    Difference(line="an update that changes nothing", explains=asks("^update that changes nothing$")),
    Difference(line="deleting twice", explains=is_second_delete),
    Difference(line="a deletion that no agent confirms", explains=is_reminder),
    Difference(line="changing a resource of another source", explains=answered(ours="belongs to another source")),
    Difference(
        line="changing a resource under another cluster name",
        explains=answered(
            go="publish OK", ours="is not the consumer of|failed to get clustername extension: it must be"
        ),
    ),
    Difference(
        line="negative or fractional `resourceversion`", explains=answered(ours="failed to get resourceversion")
    ),
    Difference(
        line="`metadata` that is `null`", explains=answered(go="publish OK", ours="metadata extension to object")
    ),
    Difference(
        line="an event without `id` or `source`", explains=answered(go="publish OK", ours="the event has no id")
    ),
    Difference(line="data type `manifests`", explains=answered(ours="unsupported cloudevents data type")),
    Difference(
        line="updates that add, remove or rename manifests",
        explains=answered(go="field is immutable|different number of objects", ours="publish OK"),
    ),
    Difference(
        line="equal manifests, `deletionGracePeriodSeconds`",
        explains=answered(go="publish OK", ours="duplicate manifest|deletionGracePeriodSeconds"),
    ),
    # Reports
    Difference(
        line="extension `createdat` of events to agents", explains=in_field(r"^to agent.*createdat$", go=ABSENT)
    ),
    Difference(
        line="extension `resyncid` of resync responses to agents",
        explains=in_field(r"^to agent.*resyncid$", go=ABSENT),
    ),
    Difference(
        line="extension `databaseid` of events to agents", explains=in_field(r"^to agent.*databaseid$", go=ABSENT)
    ),
    Difference(line="spec resync", explains=both(asks("^spec resync"), in_field("^to agent"))),
    Difference(
        line="`metadata` of a status update",
        explains=answered(go="report FAILED_PRECONDITION {}", ours=r"report OK\s*$"),
    ),
    Difference(
        line="`sequenceid` that is no number", explains=answered(go="report OK", ours="sequenceid|to get sequenceid")
    ),
    Difference(
        line="a new status whose `sequenceid` is not newer, or of another node",
        explains=answered(ours="is not newer than the stored one|not from the same node"),
    ),
    Difference(
        line="`sequenceid` more than five minutes ahead of the database",
        explains=answered(ours="ahead of the time of the database"),
    ),
    Difference(line="data `null` of a status update", explains=asks("^status, data null$")),
    Difference(line="a status update without data (0 bytes)", explains=asks("^status, data none$")),
    Difference(
        line="a spec request at the port for agents", explains=answered(go="report OK", ours="agents send statuses")
    ),
    Difference(line="`Deleted` for a resource that is not being deleted", explains=asks("^gone without a deletion$")),
)


def refute(found: Iterable[Mismatch]) -> None:
    """Fail with the mismatches that nobody intended."""
    left = [str(each) for each in found if not any(known.explains(each) for known in INTENDED)]
    assert not left, "\n".join([f"{len(left)} differences that nobody intended:", *left])


# Flags, by command: those that are not known, and those with another default (Go's, ours).
FLAGS_LINE = "flags of features that are gone (`--acl-file`, `--jwk-*`, `--ocm-*`, `--sentry-*`, `--enable-jwt`)"
FLAGS_LEFT_OUT: dict[str, set[str]] = {
    "server": {
        *("--acl-file", "--jwk-cert-file", "--jwk-cert-url", "--self-token-file"),
        *("--enable-sentry-debug", "--sentry-key-file", "--sentry-project", "--sentry-timeout", "--sentry-url"),
        *("--ocm-base-url", "--ocm-client-id-file", "--ocm-client-secret-file", "--ocm-debug", "--ocm-token-url"),
    }
}
FLAGS_OF_NEWER_GO = frozenset(
    {
        *("--disable-grpc-tls", "--undelivered-resource-threshold", "--stale-delete-event-threshold"),
        *("--delete-event-republish-interval", "--delete-event-republish-max-interval"),
        *("--delete-event-republish-batch-size", "--max-feedback-watch", "--workload-agent-workers"),
    }
)
"""Flags of Go Maestro that the help of one version or another does not show: too new for it, or deprecated."""
DEFAULTS_LINES = (
    "`--message-broker-type`",
    "`--kube-api-qps`, `--kube-api-burst`",
    "default of `--workload-source-driver`",
    "`--listen` of the agent",
)
FLAG_DEFAULTS: dict[str, dict[str, tuple[str, str]]] = {
    "server": {
        "--message-broker-type": ("mqtt", "grpc"),
        "--grpc-max-concurrent-streams": ("4294967295", "500"),
    },
    "agent": {
        "--kube-api-burst": ("100", "1000"),
        "--kube-api-qps": ("50", "500"),
        "--listen": ("", "0.0.0.0:8443"),
        "--workload-source-driver": ("kube", "grpc"),
        "--workload-source-config": ("/spoke/hub-kubeconfig/kubeconfig", ""),
    },
}
LINES = frozenset({*(each.line for each in INTENDED), *DEFAULTS_LINES, FLAGS_LINE})
"""Every line of the page that something here relies on."""
