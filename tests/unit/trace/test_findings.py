"""The catalogue of findings: complete, with phrases that are really logged."""

import inspect
import re
from pathlib import Path

import pytest

import maestropy
from maestropy.journal import phrases as journal_phrases
from maestropy.trace.findings import explain
from maestropy.trace.findings.codes import CODES, SQL, Entry
from maestropy.trace.logs.read import phrases
from maestropy.trace.stages import STAGES

SOURCES = Path(maestropy.__file__).parent
_CODE = re.compile(r"\b(?:MT|MW|HCP|MD)-\d{3}\b")
GO = {
    "AppliedManifestWorkComplete": "ocm pkg/work/spoke/controllers/manifestcontroller/manifestwork_reconciler.go",
    "AppliedManifestWorkFailed": "ocm pkg/work/spoke/controllers/manifestcontroller/manifestwork_reconciler.go",
    "AppliedManifestWork scheduled for eviction": "ocm pkg/work/spoke/controllers/finalizercontroller, at -v=4",
    "AvailableStatusController": "ocm pkg/work/spoke/controllers/statuscontroller, the name of its controller",
    "CreateFailed": "library-go pkg/operator/resource/resourceapply (reason of a recorded event)",
    "UpdateFailed": "library-go pkg/operator/resource/resourceapply (reason of a recorded event)",
    "PublishError": "sdk-go pkg/cloudevents/clients/errors/errors.go",
    "Received SIGTERM or SIGINT signal": "library-go pkg/controller/controllercmd/cmd.go",
    "connection refused": "text of the operating system, in err",
    "context deadline exceeded": "text of Go's context, in err",
    "conversion webhook": "kubernetes apiextensions-apiserver pkg/apiserver/conversion/webhook_converter.go",
    "failed calling webhook": "kubernetes apiserver pkg/admission/plugin/webhook/errors",
    "quota evaluation timed out": "kubernetes apiserver pkg/admission/plugin/resourcequota/controller.go",
    "request is too large": "etcd server/etcdserver/errors",
    "failed to convert resource": "maestro cmd/maestro/server/event_server.go",
    "failed to create resource": "maestro cmd/maestro/server/grpc_server.go",
    "because it is being terminated": "kubernetes apiserver pkg/admission/plugin/namespace/lifecycle/admission.go",
    "failed to create status event": "maestro cmd/maestro/server/event_server.go",
    "failed to decode cloudevent": "maestro cmd/maestro/server/event_server.go",
    "failed to get resource": "maestro cmd/maestro/server/event_server.go",
    "failed to get status event": "maestro cmd/maestro/server/event_server.go",
    "failed to handle resource status update": "maestro cmd/maestro/server/event_server.go",
    "fk_resources_consumers": "name of the foreign key, in PostgreSQL's error",
    "is terminating": "ocm pkg/work/spoke/controllers/finalizercontroller/appliedmanifestwork_finalize_controller.go",
    "larger than max": "grpc rpc_util.go",
    "original source": "maestro pkg/client/cloudevents/codec.go",
    "packet too large": "reason code 0x95 of MQTT",
    "spec.resync_response": "end of an event type: sdk-go pkg/cloudevents/generic/types",
    "subscribing to topics": "cloudevents sdk-go protocol/mqtt_paho/v2/protocol.go",
    "Unauthorized": "reason of status 401: kubernetes apimachinery pkg/apis/meta/v1/types.go",
    "the server has asked for the client to provide credentials": "kubernetes apimachinery pkg/api/errors/errors.go",
    "tls: failed to verify certificate": "go crypto/tls/common.go",
    "x509: certificate": "go crypto/x509/verify.go",
    "the cloudevents client is not ready": "sdk-go pkg/cloudevents/generic/clients/baseclient.go",
    "the resource version is not the latest": "maestro pkg/services/resource.go",
    "unauthorized to publish the event from source": "maestro cmd/maestro/server/grpc_server.go",
    "under deletion": "maestro pkg/services/resource.go",
    "unmatched consumer name": "maestro cmd/maestro/server/event_server.go",
    "unsupported action": "maestro cmd/maestro/server/grpc_server.go",
}
"""Texts that only Go components write, or that stand in an error, with the file of the source that has them."""


def emitted() -> set[str]:
    modules = [path for path in SOURCES.rglob("*.py") if path.parent != SOURCES / "trace" / "findings"]
    named = {code for path in modules for code in _CODE.findall(path.read_text())}
    return named | set(_CODE.findall((SOURCES / "trace" / "findings" / "apply_errors.py").read_text()))


def journal() -> list[str]:
    groups = [group for name, group in inspect.getmembers(journal_phrases, inspect.isclass) if name.endswith("Phrase")]
    texts = [text for group in groups for name, text in vars(group).items() if name.isupper() and isinstance(text, str)]
    patterns = [one.pattern.pattern.decode().replace("\\", "") for one in phrases.UNSTRUCTURED]
    return [*texts, *(text.decode() for text in phrases.STRUCTURED), *patterns]


def test_catalogue_has_exactly_the_codes_that_are_emitted() -> None:
    assert emitted() == set(CODES)


def test_phrases_are_written_by_go_or_by_this_project() -> None:
    logged = journal()
    named = {phrase for entry in CODES.values() for phrase in entry.phrases}
    assert {phrase for phrase in named - set(GO) if not any(phrase in text for text in logged)} == set()
    assert set(GO) <= named, "a text that no finding names any more"


@pytest.mark.parametrize("entry", CODES.values(), ids=CODES)
def test_entry_is_complete(entry: Entry) -> None:
    assert entry.cause.endswith(".")
    assert entry.title
    assert entry.advice or entry.severity == "info"
    assert all(name in SQL for name in entry.sql)
    if entry.stage:
        assert entry.stage in STAGES
        assert entry.severity != "error" or entry.normal
        assert entry.phrases, "a finding about a stage is read from log lines: name them"


@pytest.mark.parametrize("entry", CODES.values(), ids=CODES)
def test_explanation_has_everything(entry: Entry) -> None:
    text = explain.explained(entry.code)
    assert text.startswith(f"{entry.code}  {entry.severity}  ")
    assert entry.cause in text
    assert all(f"search  {phrase}\n" in text for phrase in entry.phrases)
    assert all(f"normal  {line}\n" in text for line in entry.normal)
    assert text.count("do      ") == len(entry.advice)
    assert ("jsonb_pretty" in text) is any(
        name in ("resource", "conditions", "manifests", "status_events") for name in entry.sql
    )
    assert (entry.code, entry.severity, entry.title) in explain.titles()
