"""The phrases of the Go Maestro are a contract: dashboards and log queries break when one changes."""

import pytest

from maestropy.journal import fields, phrases

PHRASES = {
    text
    for group in (*vars(fields).values(), *vars(phrases).values())
    if isinstance(group, type)
    for text in vars(group).values()
    if isinstance(text, str)
}


@pytest.mark.parametrize(
    "phrase",
    [
        "receive the event from client",
        "Publishing resource for db row insert",
        "Publishing resource for db row update",
        "Publishing resource for db row delete",
        "Sending event",
        "Received event",
        "received status update for resource",
        "skipping resource status update as it is not owned by the current instance",
        "handle resource status update by the current instance",
        "Updating resource status",
        "resource status update event was sent",
        "resource status delete event was sent",
        "Broadcast the resource status",
        "send the event to status subscribers",
        "no clients registered on this instance",
        "registered a broadcaster client",
        "unregistered broadcaster client",
        "Failed to publish resource",
        "mqtt is connected",
        "subscribed to mqtt broker",
        "subscribed to grpc server",
        "reconnecting the cloudevents client",
        "the cloudevents client is reconnected",
        "start the cloudevents receiver",
        "purge all reconciled events",
        "sync all unreconciled events",
        "Starting gRPC server",
        "Starting HealthCheck server",
        "Starting event broadcaster",
        "Starting message queue event server",
        "Starting listener",
        "resourceID",
        "eventID",
        "eventType",
        "eventSource",
        "extensions",
        "op-id",
    ],
)
def test_go_phrase_is_unchanged(phrase: str) -> None:
    assert phrase in PHRASES
