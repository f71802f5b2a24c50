"""Reject the configuration file of a message broker that the server would not use.

The default of `--message-broker-type` is grpc, and mqtt in the Go server: with the flags of a Go server on MQTT this
one would start, ready, with no agent connected.
"""

from maestropy.flags import SettingsError, document
from maestropy.server.settings.model import ServerSettings

_FLAG = "--message-broker-config-file"
_TYPE_BY_KEY = {"brokerHost": "mqtt", "projectID": "pubsub"}


def check_broker_file(settings: ServerSettings) -> None:
    """Raise SettingsError if the command line has a file for MQTT or Pub/Sub, but not the type of the broker."""
    broker = settings.broker
    if broker.disabled or not broker.file_is_given or broker.type_is_given:
        return
    try:
        section = document.read(broker.config_file, flag=_FLAG, example="brokerHost: localhost:1883")
    except SettingsError:
        return  # the built-in broker reads no file: neither an absent one nor one of another kind matters
    for key, kind in _TYPE_BY_KEY.items():
        if section.has(key):
            raise SettingsError(
                f"{section.origin} is for {kind} (it has {key}), but the default of --message-broker-type is grpc; "
                f"add --message-broker-type={kind}, or leave {_FLAG} out"
            )
