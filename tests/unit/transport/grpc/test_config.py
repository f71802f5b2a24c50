import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.flags import SettingsError
from maestropy.transport.grpc import config
from maestropy.transport.grpc.client import GrpcEndpoint


def parse(content: str | dict[str, Any]) -> config.GrpcConfig:
    text = content if isinstance(content, str) else json.dumps(content)
    return config.parse(text.encode(), origin="config.yaml")


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(
            "url: maestro:8091", GrpcEndpoint(url="maestro:8091", heartbeat_timeout_seconds=20.0), id="url-only"
        ),
        pytest.param(
            '{"url":"maestro:8091"}', GrpcEndpoint(url="maestro:8091", heartbeat_timeout_seconds=20.0), id="json"
        ),
        pytest.param(
            "url: m:1\ncaFile: /ca\nclientCertFile: /c\nclientKeyFile: /k\nserverHealthinessTimeout: 1m30s",
            GrpcEndpoint(
                url="m:1",
                ca_file=Path("/ca"),
                client_cert_file=Path("/c"),
                client_key_file=Path("/k"),
                heartbeat_timeout_seconds=90.0,
            ),
            id="certificates",
        ),
        pytest.param(
            f"url: m:1\ncaData: {encoded('A')}\nclientCertData: {encoded('C')}\nclientKeyData: {encoded('K')}\n",
            GrpcEndpoint(
                url="m:1", ca_data=b"A", client_cert_data=b"C", client_key_data=b"K", heartbeat_timeout_seconds=20.0
            ),
            id="certificate-data",
        ),
        pytest.param(
            f"url: m:1\ncaFile: /ca\nclientCertData: {encoded('C')}\nclientKeyFile: /k\n",
            GrpcEndpoint(
                url="m:1",
                ca_file=Path("/ca"),
                client_cert_data=b"C",
                client_key_file=Path("/k"),
                heartbeat_timeout_seconds=20.0,
            ),
            id="certificate-data-and-key-file",
        ),
        pytest.param(
            "url: m:1\ncaFile: /ca\ntokenFile: /t\nserverHealthinessTimeout: 0s",
            GrpcEndpoint(url="m:1", ca_file=Path("/ca"), token_file=Path("/t"), heartbeat_timeout_seconds=None),
            id="token-file-and-no-timeout",
        ),
        pytest.param(
            "url: m:1\ncaFile: /ca\ntoken: abc\ntokenFile: /t",
            GrpcEndpoint(url="m:1", ca_file=Path("/ca"), token="abc", heartbeat_timeout_seconds=20.0),
            id="token-before-token-file",
        ),
        pytest.param(
            '{"url":"m:1","keepAliveConfig":{"enable":true,"time":10s,"timeout":5s,"permitWithoutStream":true}}',
            GrpcEndpoint(
                url="m:1",
                keepalive_seconds=10.0,
                keepalive_timeout_seconds=5.0,
                keepalive_without_calls=True,
                heartbeat_timeout_seconds=20.0,
            ),
            id="keepalive",
        ),
        pytest.param(
            "url: m:1\nkeepAliveConfig:\n  enable: true",
            GrpcEndpoint(url="m:1", keepalive_seconds=30.0, heartbeat_timeout_seconds=20.0),
            id="keepalive-defaults",
        ),
        pytest.param(
            "url: m:1\nkeepAliveConfig:\n  time: 10s",
            GrpcEndpoint(url="m:1", heartbeat_timeout_seconds=20.0),
            id="keepalive-not-enabled",
        ),
        pytest.param(
            "url: m:1\ntoken:\ncaFile: ''",
            GrpcEndpoint(url="m:1", heartbeat_timeout_seconds=20.0),
            id="empty-is-absent",
        ),
    ],
)
def test_file_is_parsed_to_an_endpoint(content: str, expected: GrpcEndpoint) -> None:
    assert parse(content).endpoint == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("", "url is required; write host:port", id="empty"),
        pytest.param("url: ''", "url is required; write host:port", id="empty-url"),
        pytest.param("url: m:65536", "url must be host:port, with a port from 1 to 65535", id="large-port"),
        pytest.param("url: m:-1", "url must be host:port, with a port from 1 to 65535", id="negative-port"),
        pytest.param("url: https://m:1", "url must be host:port, without a scheme", id="scheme"),
        pytest.param(
            {"url": "m:1", "clientCertData": "dGVzdAo="},
            "either both or none of clientCertFile and clientKeyFile must be set; add",
            id="certificate-without-key",
        ),
        pytest.param(
            {"url": "m:1", "clientKeyFile": "/k"},
            "either both or none of clientCertFile and clientKeyFile must be set; add",
            id="key-without-certificate",
        ),
        pytest.param(
            {"url": "m:1", "token": "s3cret"},
            "setting token requires authority certificates; add",
            id="token-without-ca",
        ),
        pytest.param(
            {"url": "m:1", "tokenFile": "/t"},
            "setting token requires authority certificates; add",
            id="token-file-without-ca",
        ),
        pytest.param({"url": 8091}, "url cannot be used; write a text in quotes", id="url-is-a-number"),
        pytest.param({"url": "m:1", "caData": "s3cret!"}, "caData cannot be used; write base64", id="not-base64"),
        pytest.param({"url": "m:1", "caData": "s3cr\u00e9t"}, "caData cannot be used; write base64", id="not-ascii"),
        pytest.param(
            {"url": "m:1", "serverHealthinessTimeout": 20}, "write a duration with its unit", id="duration-is-a-number"
        ),
        pytest.param({"url": "m:1", "serverHealthinessTimeout": "-1s"}, "write a duration", id="negative-duration"),
        pytest.param({"url": "m:1", "keepAliveConfig": "yes"}, "keepAliveConfig cannot be used", id="not-a-section"),
        pytest.param(
            {"url": "m:1", "keepAliveConfig": {"enable": "maybe"}},
            "config.yaml: keepAliveConfig: enable cannot be used; write true or false",
            id="not-a-switch",
        ),
        pytest.param("- url", "config.yaml holds no settings", id="list"),
        pytest.param("1: 2", "config.yaml holds no settings", id="numbered-keys"),
        pytest.param("token: [s3cret", "config.yaml is neither YAML nor JSON", id="incomplete-yaml"),
        pytest.param("token: s3cret\n\tx: y", "config.yaml is neither YAML nor JSON", id="tabs"),
        pytest.param("token: s3cret\n\x00", "config.yaml is neither YAML nor JSON", id="control-character"),
    ],
)
def test_error_names_the_key_and_quotes_no_value(content: str | dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)) as caught:
        parse(content)
    assert str(caught.value).startswith("config.yaml")
    assert "s3cr" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("content", ["url: m:1\ntoken: s3cret\nurl: n:1\n", '{"url": "m:1",\n"a": 1,\n"url": "n:1"}'])
def test_a_repeated_key_is_rejected_with_file_line_and_key(content: str) -> None:
    message = r"^config\.yaml cannot be used: line 3: the key url is there twice, first in line 1; keep one of the two$"
    with pytest.raises(SettingsError, match=message):
        parse(content)


def test_file_that_is_not_utf8_is_rejected() -> None:
    with pytest.raises(SettingsError, match="is neither YAML nor JSON"):
        config.parse(b"url: \xff\xfe", origin="config.yaml")


def test_unknown_key_is_noted() -> None:
    parsed = parse("url: m:1\nserverName: x\nkeepAliveConfig:\n  interval: 3s\n")
    assert parsed.endpoint.url == "m:1"
    assert parsed.notes == (
        "config.yaml: serverName is not a setting of the gRPC driver and is ignored",
        "config.yaml: keepAliveConfig.interval is not known and is ignored",
    )


def test_ca_alone_means_tls_and_is_noted() -> None:
    parsed = parse("url: m:1\ncaFile: /ca")
    assert parsed.endpoint.is_secure
    assert [note for note in parsed.notes if "means TLS here" in note]


def test_repr_holds_no_secret() -> None:
    parsed = parse(
        {
            "url": "m:1",
            "caData": encoded("s3cret"),
            "clientCertData": encoded("s3cret"),
            "clientKeyData": encoded("s3cret"),
            "token": "s3cret",
        }
    )
    assert parsed.endpoint.token == "s3cret"
    assert "s3cret" not in repr(parsed)


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_content_is_an_endpoint_or_a_settings_error(content: bytes) -> None:
    try:
        url = config.parse(content, origin="f").endpoint.url
    except SettingsError as error:
        url = str(error).removeprefix("f")
    assert url


def test_address_flag_is_an_endpoint_without_tls() -> None:
    parsed = config.plain("localhost:8091", flag="--grpc-url")
    assert parsed == config.GrpcConfig(endpoint=GrpcEndpoint(url="localhost:8091", heartbeat_timeout_seconds=20.0))
    with pytest.raises(SettingsError, match="--grpc-url must be host:port"):
        config.plain("http://localhost:8091", flag="--grpc-url")


def test_file_is_read_from_its_path(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    with pytest.raises(SettingsError, match=r"--workload-source-config=.* cannot be read \(No such file"):
        config.read(path, flag="--workload-source-config")
    path.write_text("url: maestro:8091\n")
    assert config.read(path, flag="--workload-source-config").endpoint.url == "maestro:8091"
