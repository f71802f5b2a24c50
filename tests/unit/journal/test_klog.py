"""The lines below are what existing tools parse; each must come out to the byte."""

from collections.abc import Mapping
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.journal import klog
from maestropy.journal.fields import Absorb, Accept, Agent, Broker, Deliver, Fanout, Key, Logger, Sweep
from maestropy.journal.record import Record, Severity

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
    severity: Severity = "info",
    err: str | None = None,
) -> Record:
    return Record(severity, 0, at, 1, caller, message, err, "", fields)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        pytest.param(
            record(
                Accept.RECEIVED,
                {
                    Key.OP_ID: OP,
                    Key.EVENT_ID: "1aaad717-7daa-4d33-b087-8e258dab9c5f",
                    Key.EVENT_TYPE: CREATE,
                    Key.EVENT_SOURCE: "mw-client-example",
                    Key.EXTENSIONS: {
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
                Deliver.INSERTED,
                {Key.LOGGER: Logger.CONTROLLERS, Key.EVENT: DB_EVENT, Key.RESOURCE_ID: RESOURCE},
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
                {Key.LOGGER: Logger.WORK, Key.MANIFEST_WORK_NAME: RESOURCE, Key.REASON: "ConfigMapUpdateFailed"},
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
                Agent.REQUEUE,
                {Key.LOGGER: Logger.WORK, Key.OP_ID: OP, Key.REQUEUE_TIME: timedelta(minutes=5, seconds=13.27)},
                at=MORNING + 1.363456,
                caller="manifestwork_controller.go:201",
            ),
            'I0115 09:00:01.363456       1 manifestwork_controller.go:201] "Requeue manifestwork" '
            'logger="ManifestWorkController" op-id="2dd9d768-a02d-4539-a99f-8a2c801a1c4b" requeue time="5m13.27s"',
            id="stage-4-duration-and-a-key-with-a-blank",
        ),
        pytest.param(
            record(
                Absorb.STALE,
                {
                    Key.LOGGER: Logger.SERVER,
                    Key.OP_ID: OP,
                    Key.RESOURCE_ID: RESOURCE,
                    Key.FOUND_VERSION: 2,
                    Key.WANT_VERSION: 1,
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
                Absorb.UPDATING,
                {Key.EVENT: '{"specversion":"1.0","logtracing":"{\\"op\\":\\"1\\"}"}'},
                at=MORNING + 300.678118,
                caller="resource.go:203",
            ),
            'I0115 09:05:00.678118       1 resource.go:203] "Updating resource status" '
            r'event="{\"specversion\":\"1.0\",\"logtracing\":\"{\\\"op\\\":\\\"1\\\"}\"}"',
            id="stage-7-whole-event",
        ),
        pytest.param(
            record(
                Fanout.BROADCAST,
                {
                    Key.LOGGER: Logger.CONTROLLERS,
                    Key.STATUS_EVENT: STATUS_EVENT,
                    Key.RESOURCE_ID: RESOURCE,
                    Key.INSTANCE_ID: "maestro-maestro-556dfb55f-x8mtx",
                    Key.EVENT_ID: STATUS_EVENT,
                    Key.SOURCE: "mw-client-example",
                    Key.STATUS_EVENT_TYPE: "StatusUpdate",
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
                Deliver.PUBLISH_FAILED,
                {Key.LOGGER: Logger.CONTROLLERS, Key.EVENT: DB_EVENT, Key.RESOURCE_ID: RESOURCE},
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
                Broker.MQTT_SUBSCRIBED,
                {Key.TOPIC: "sources/maestro/consumers/mgmt-1/sourceevents", Key.QOS: 1},
                at=MORNING + 2.01,
                caller="transport.go:157",
            ),
            'I0115 09:00:02.010000       1 transport.go:157] "subscribed to mqtt broker" '
            'topic="sources/maestro/consumers/mgmt-1/sourceevents" QoS=1',
            id="connection",
        ),
        pytest.param(
            record(
                Sweep.REPUBLISHED,
                {Key.CONSUMER_NAME: "mgmt-1", Key.AGE: timedelta(minutes=11, seconds=58.9)},
                at=MORNING + 720,
                caller="undelivered_detector.go:91",
            ),
            'I0115 09:12:00.000000       1 undelivered_detector.go:91] "Re-published undelivered resource" '
            'consumerName="mgmt-1" age="11m58.9s"',
            id="sweep",
        ),
        pytest.param(
            record(Accept.RECEIVED, {"context": "Context Attributes,\n  specversion: 1.0\nExtensions,\n"}),
            'I0115 09:00:00.000000       1 x.py:1] "receive the event from client" context=<\n'
            "\tContext Attributes,\n\t  specversion: 1.0\n\tExtensions,\n >",
            id="many-lines-ending-in-one",
        ),
        pytest.param(
            record("m", {"a": "x\ny"}, err="p\nq"),
            'I0115 09:00:00.000000       1 x.py:1] "m" err=<\n\tp\n\tq\n > a=<\n\tx\n\ty\n >',
            id="many-lines-twice",
        ),
        pytest.param(
            record("two\nlines", {}, at=MORNING + 0.9999997),
            r'I0115 09:00:01.000000       1 x.py:1] "two\nlines"',
            id="message-is-always-quoted-and-time-carries-over",
        ),
    ],
)
def test_line(said: Record, line: str) -> None:
    assert klog.line(said) == line + "\n"


@given(st.text(), st.text())
def test_no_value_can_forge_a_record(message: str, value: str) -> None:
    text = klog.line(record(message, {"key": value}))
    for continuation in text.removesuffix("\n").split("\n")[1:]:
        assert continuation.startswith(("\t", " >"))


def test_context_stands_between_error_and_fields() -> None:
    said = Record("error", 0, MORNING, 1234567, "x.py:1", "m", "boom", klog.pairs({"a": 1}), {"b": True, "c": None})
    assert klog.line(said) == 'E0115 09:00:00.000000 1234567 x.py:1] "m" err="boom" a=1 b=true c=null\n'
