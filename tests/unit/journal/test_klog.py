"""klog lines equal those of the Go programs byte for byte: existing tools parse them."""

from collections.abc import Mapping
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.journal import klog
from maestropy.journal.fields import Logger, LogKey
from maestropy.journal.phrases import (
    AgentPhrase,
    BrokerPhrase,
    MaintenancePhrase,
    SpecDispatcherPhrase,
    SpecWriterPhrase,
    StatusDispatcherPhrase,
    StatusWriterPhrase,
)
from maestropy.journal.record import LogSeverity, Record

MORNING = 1768467600.0  # 2026-01-15T09:00:00Z
OP = "2dd9d768-a02d-4539-a99f-8a2c801a1c4b"
RESOURCE = "83dcf85d-3b0a-5f98-a940-fa44f1d2d465"
DB_EVENT = "d2a4c1de-8c26-4e3f-9a35-0b3ff1f5f6c7"
STATUS_EVENT = "8a3993ab-1193-4d40-bc8c-6bc1fc098089"
CREATE = "io.open-cluster-management.works.v1alpha1.manifestbundles.spec.create_request"


def record(
    message: str,
    fields: Mapping[str, object],
    *,
    at: float = MORNING,
    caller: str = "x.py:1",
    severity: LogSeverity = "info",
    err: str | None = None,
) -> Record:
    return Record(severity, 0, at, 1, caller, message, err, "", fields)


@pytest.mark.parametrize(
    ("logged", "line"),
    [
        pytest.param(
            record(
                SpecWriterPhrase.RECEIVED,
                {
                    LogKey.OP_ID: OP,
                    LogKey.EVENT_ID: "1aaad717-7daa-4d33-b087-8e258dab9c5f",
                    LogKey.EVENT_TYPE: CREATE,
                    LogKey.EVENT_SOURCE: "mw-client-example",
                    LogKey.EXTENSIONS: {
                        "resourceversion": 0,
                        "resourceid": RESOURCE,
                        "originalsource": "",
                        "metadata": '{"name":"nginx-work","namespace":"mgmt-1",'
                        f'"uid":"{RESOURCE}","resourceVersion":"0"}}',
                        "logtracing": f'{{"logging.open-cluster-management.io/op-id":"{OP}"}}',
                        "clustername": "mgmt-1",
                    },
                },
                at=MORNING + 1.123456,
                caller="grpc_server.go:205",
            ),
            'I0115 09:00:01.123456       1 grpc_server.go:205] "receive the event from client" '
            'op-id="2dd9d768-a02d-4539-a99f-8a2c801a1c4b" eventID="1aaad717-7daa-4d33-b087-8e258dab9c5f" '
            'eventType="io.open-cluster-management.works.v1alpha1.manifestbundles.spec.create_request" '
            'eventSource="mw-client-example" extensions={"clustername":"mgmt-1","logtracing":'
            r'"{\"logging.open-cluster-management.io/op-id\":\"2dd9d768-a02d-4539-a99f-8a2c801a1c4b\"}","metadata":'
            r'"{\"name\":\"nginx-work\",\"namespace\":\"mgmt-1\",\"uid\":\"83dcf85d-3b0a-5f98-a940-fa44f1d2d465\",'
            r'\"resourceVersion\":\"0\"}","originalsource":"","resourceid":"83dcf85d-3b0a-5f98-a940-fa44f1d2d465",'
            '"resourceversion":0}',
            id="stage-1-received",
        ),
        pytest.param(
            record(
                SpecDispatcherPhrase.INSERTED,
                {LogKey.LOGGER: Logger.CONTROLLERS, LogKey.EVENT: DB_EVENT, LogKey.RESOURCE_ID: RESOURCE},
                at=MORNING + 1.164456,
                caller="source_client.go:92",
            ),
            'I0115 09:00:01.164456       1 source_client.go:92] "Publishing resource for db row insert" '
            'logger="maestro-server.maestro-controllers" event="d2a4c1de-8c26-4e3f-9a35-0b3ff1f5f6c7" '
            'resourceID="83dcf85d-3b0a-5f98-a940-fa44f1d2d465"',
            id="stage-2-published",
        ),
        pytest.param(
            record(
                "WARNING: Failed to update ConfigMap/nginx-cm -n default: Operation cannot be fulfilled on configmaps"
                ' "nginx-cm": the object has been modified',
                {
                    LogKey.LOGGER: Logger.WORK,
                    LogKey.MANIFEST_WORK_NAME: RESOURCE,
                    LogKey.REASON: "ConfigMapUpdateFailed",
                },
                at=MORNING + 300.592118,
                caller="logging_recorder.go:50",
            ),
            "I0115 09:05:00.592118       1 logging_recorder.go:50] "
            '"WARNING: Failed to update ConfigMap/nginx-cm -n default: Operation cannot be fulfilled on configmaps '
            r'\"nginx-cm\": the object has been modified" logger="ManifestWorkController" '
            'manifestWorkName="83dcf85d-3b0a-5f98-a940-fa44f1d2d465" reason="ConfigMapUpdateFailed"',
            id="stage-4-quotes-in-the-message",
        ),
        pytest.param(
            record(
                AgentPhrase.REQUEUE,
                {
                    LogKey.LOGGER: Logger.WORK,
                    LogKey.OP_ID: OP,
                    LogKey.REQUEUE_TIME: timedelta(minutes=5, seconds=13.27),
                },
                at=MORNING + 1.363456,
                caller="manifestwork_controller.go:201",
            ),
            'I0115 09:00:01.363456       1 manifestwork_controller.go:201] "Requeue manifestwork" '
            'logger="ManifestWorkController" op-id="2dd9d768-a02d-4539-a99f-8a2c801a1c4b" requeue time="5m13.27s"',
            id="stage-4-duration-and-key-with-space",
        ),
        pytest.param(
            record(
                StatusWriterPhrase.STALE,
                {
                    LogKey.LOGGER: Logger.SERVER,
                    LogKey.OP_ID: OP,
                    LogKey.RESOURCE_ID: RESOURCE,
                    LogKey.FOUND_VERSION: 2,
                    LogKey.WANT_VERSION: 1,
                },
                at=MORNING + 300.678118,
                caller="resource.go:186",
            ),
            'I0115 09:05:00.678118       1 resource.go:186] "Updating status for stale resource; disregard it" '
            'logger="maestro-server" op-id="2dd9d768-a02d-4539-a99f-8a2c801a1c4b" '
            'resourceID="83dcf85d-3b0a-5f98-a940-fa44f1d2d465" foundVersion=2 wantVersion=1',
            id="stage-7-stale",
        ),
        pytest.param(
            record(
                StatusWriterPhrase.UPDATING,
                {LogKey.EVENT: '{"specversion":"1.0","logtracing":"{\\"op\\":\\"1\\"}"}'},
                at=MORNING + 300.678118,
                caller="resource.go:203",
            ),
            'I0115 09:05:00.678118       1 resource.go:203] "Updating resource status" '
            r'event="{\"specversion\":\"1.0\",\"logtracing\":\"{\\\"op\\\":\\\"1\\\"}\"}"',
            id="stage-7-whole-event",
        ),
        pytest.param(
            record(
                StatusDispatcherPhrase.BROADCAST,
                {
                    LogKey.LOGGER: Logger.CONTROLLERS,
                    LogKey.STATUS_EVENT: STATUS_EVENT,
                    LogKey.RESOURCE_ID: RESOURCE,
                    LogKey.INSTANCE_ID: "maestro-maestro-556dfb55f-x8mtx",
                    LogKey.EVENT_ID: STATUS_EVENT,
                    LogKey.SOURCE: "mw-client-example",
                    LogKey.STATUS_EVENT_TYPE: "StatusUpdate",
                },
                at=MORNING + 1.411456,
                caller="event_server.go:315",
            ),
            'I0115 09:00:01.411456       1 event_server.go:315] "Broadcast the resource status" '
            'logger="maestro-server.maestro-controllers" status_event="8a3993ab-1193-4d40-bc8c-6bc1fc098089" '
            'resourceID="83dcf85d-3b0a-5f98-a940-fa44f1d2d465" instanceID="maestro-maestro-556dfb55f-x8mtx" '
            'eventID="8a3993ab-1193-4d40-bc8c-6bc1fc098089" source="mw-client-example" statusEventType="StatusUpdate"',
            id="stage-8-broadcast",
        ),
        pytest.param(
            record(
                SpecDispatcherPhrase.PUBLISH_FAILED,
                {LogKey.LOGGER: Logger.CONTROLLERS, LogKey.EVENT: DB_EVENT, LogKey.RESOURCE_ID: RESOURCE},
                at=MORNING + 1.170002,
                caller="source_client.go:99",
                severity="error",
                err="the cloudevents client is not ready",
            ),
            'E0115 09:00:01.170002       1 source_client.go:99] "Failed to publish resource" '
            'err="the cloudevents client is not ready" logger="maestro-server.maestro-controllers" '
            'event="d2a4c1de-8c26-4e3f-9a35-0b3ff1f5f6c7" resourceID="83dcf85d-3b0a-5f98-a940-fa44f1d2d465"',
            id="error-comes-first",
        ),
        pytest.param(
            record(
                BrokerPhrase.MQTT_SUBSCRIBED,
                {LogKey.TOPIC: "sources/maestro/consumers/mgmt-1/sourceevents", LogKey.QOS: 1},
                at=MORNING + 2.01,
                caller="transport.go:157",
            ),
            'I0115 09:00:02.010000       1 transport.go:157] "subscribed to mqtt broker" '
            'topic="sources/maestro/consumers/mgmt-1/sourceevents" QoS=1',
            id="connection",
        ),
        pytest.param(
            record(
                MaintenancePhrase.REPUBLISHED,
                {LogKey.CONSUMER_NAME: "mgmt-1", LogKey.AGE: timedelta(minutes=11, seconds=58.9)},
                at=MORNING + 720,
                caller="undelivered_detector.go:91",
            ),
            'I0115 09:12:00.000000       1 undelivered_detector.go:91] "Re-published undelivered resource" '
            'consumerName="mgmt-1" age="11m58.9s"',
            id="maintenance",
        ),
        pytest.param(
            record(SpecWriterPhrase.RECEIVED, {"context": "Context Attributes,\n  specversion: 1.0\nExtensions,\n"}),
            'I0115 09:00:00.000000       1 x.py:1] "receive the event from client" context=<\n'
            "\tContext Attributes,\n\t  specversion: 1.0\n\tExtensions,\n >",
            id="multi-line-value",
        ),
        pytest.param(
            record("m", {"a": "x\ny"}, err="p\nq"),
            'I0115 09:00:00.000000       1 x.py:1] "m" err=<\n\tp\n\tq\n > a=<\n\tx\n\ty\n >',
            id="multi-line-error-and-value",
        ),
        pytest.param(
            record("two\nlines", {}, at=MORNING + 0.9999997),
            r'I0115 09:00:01.000000       1 x.py:1] "two\nlines"',
            id="message-is-quoted-and-seconds-carry-over",
        ),
    ],
)
def test_record_is_one_klog_line(logged: Record, line: str) -> None:
    assert klog.line(logged) == line + "\n"


@given(st.text(), st.text())
def test_value_cannot_forge_a_log_record(message: str, value: str) -> None:
    text = klog.line(record(message, {"key": value}))
    for continuation in text.removesuffix("\n").split("\n")[1:]:
        assert continuation.startswith(("\t", " >"))


def test_bound_fields_follow_the_error() -> None:
    logged = Record("error", 0, MORNING, 1234567, "x.py:1", "m", "boom", klog.pairs({"a": 1}), {"b": True, "c": None})
    assert klog.line(logged) == 'E0115 09:00:00.000000 1234567 x.py:1] "m" err="boom" a=1 b=true c=null\n'
