"""Settings come from arguments and variables, and errors name them."""

from pathlib import Path
from typing import Any, cast

import pytest

from maestropy import errors
from maestropy.sdk import settings


@pytest.mark.parametrize(
    ("environ", "options", "name", "value"),
    [
        pytest.param({"MAESTRO_API_URL": "http://a:1"}, {}, "api_url", "http://a:1", id="api-url"),
        pytest.param({"MAESTRO_REST_URL": "https://b"}, {}, "api_url", "https://b", id="rest-url"),
        pytest.param({"MAESTRO_URL": "http://c/", "MAESTRO_REST_URL": ""}, {}, "api_url", "http://c", id="url"),
        pytest.param(
            {"MAESTRO_API_URL": "http://a:1", "MAESTRO_REST_URL": "http://b"},
            {},
            "api_url",
            "http://a:1",
            id="first-wins",
        ),
        pytest.param(
            {"MAESTRO_API_URL": "http://a"}, {"api_url": "http://z"}, "api_url", "http://z", id="argument-wins"
        ),
        pytest.param({"MAESTRO_API_URL": "http://a/api/maestro/v1/"}, {}, "api_url", "http://a", id="whole-path"),
        pytest.param({"MAESTRO_GRPC_SERVER_ADDRESS": "g:1"}, {}, "grpc_url", "g:1", id="grpc-cli"),
        pytest.param({"MAESTRO_GRPC_URL": "grpc://g:1"}, {}, "grpc_url", "g:1", id="grpc-scheme"),
        pytest.param({"MAESTRO_GRPC_URL": "[::1]:8090"}, {}, "grpc_url", "[::1]:8090", id="grpc-ipv6"),
        pytest.param({"MAESTRO_GRPC_SOURCE_ID": "me"}, {}, "source", "me", id="source"),
        pytest.param({"HYPERFLEET_MAESTRO_CA_FILE": "/ca"}, {}, "ca_file", Path("/ca"), id="hyperfleet"),
        pytest.param({"MAESTRO_REST_TIMEOUT": "1m30s"}, {}, "timeout", 90.0, id="go-duration"),
        pytest.param({"MAESTRO_REST_TIMEOUT": "5"}, {}, "timeout", 5.0, id="seconds"),
        pytest.param({"MAESTRO_REST_INSECURE_SKIP_VERIFY": "true"}, {}, "insecure_skip_verify", True, id="boolean"),
    ],
)
def test_setting_is_loaded(environ: dict[str, str], options: Any, name: str, value: object) -> None:
    assert getattr(settings.load(options, environ), name) == value


@pytest.mark.parametrize(
    ("environ", "options", "message"),
    [
        pytest.param(
            {"MAESTRO_REST_URL": "maestro:8000"}, {}, r"MAESTRO_REST_URL is 'maestro:8000'.*http", id="no-scheme"
        ),
        pytest.param({}, {"api_url": "http://[bad"}, "api_url is", id="no-host"),
        pytest.param({"MAESTRO_GRPC_URL": "maestro"}, {}, "MAESTRO_GRPC_URL is 'maestro'.*host:port", id="no-port"),
        pytest.param({"MAESTRO_REST_TIMEOUT": "soon"}, {}, "MAESTRO_REST_TIMEOUT is 'soon'", id="malformed-duration"),
        pytest.param({}, {"timeout": 0}, "timeout is 0", id="zero-timeout"),
        pytest.param({"MAESTRO_REST_INSECURE_SKIP_VERIFY": "maybe"}, {}, "use true or false", id="malformed-boolean"),
        pytest.param(
            {"MAESTRO_GRPC_CLIENT_CERT_FILE": "/c"},
            {},
            "MAESTRO_GRPC_CLIENT_CERT_FILE needs its counterpart",
            id="no-key",
        ),
        pytest.param({}, {"token": "a", "token_file": "b"}, "both given", id="two-tokens"),
        pytest.param({}, {"grpc_url": "h:65536"}, "grpc_url is 'h:65536'; use a port from 1 to 65535", id="large-port"),
        pytest.param({}, {"grpc_url": "h:0"}, "grpc_url is 'h:0'; use a port from 1 to 65535", id="port-zero"),
        pytest.param({}, {"api_url": "http://h:65536"}, "api_url is 'http://h:65536'", id="large-port-of-rest"),
        pytest.param({}, {"source": "a\x1bb"}, r"source is 'a\\x1bb'; use a name without", id="control-character"),
        pytest.param({}, {"source": "two words"}, "source is 'two words'; use a name without", id="space-in-source"),
        pytest.param({}, {"sourc": "me"}, "sourc is not a setting of a client; did you mean source", id="misspelt"),
        pytest.param({}, {"colour": "red"}, "colour is not a setting of a client; use api_url, grpc", id="unknown"),
    ],
)
def test_invalid_setting_is_rejected(environ: dict[str, str], options: Any, message: str) -> None:
    with pytest.raises(errors.ConfigError, match=message):
        settings.load(options, environ)


@pytest.mark.parametrize(
    "address",
    ["https://me:hunter2@h", "https://hunter2@h", "https://me:hun/ter2@h", "me:hunter2@h:8090", "ftp://me:hunter2@[h"],
)
@pytest.mark.parametrize("name", ["api_url", "grpc_url"])
def test_an_address_with_a_password_is_rejected_and_not_quoted(name: Any, address: str) -> None:
    with pytest.raises(
        errors.ConfigError, match=f"{name} contains a user or password; keep a token in a file"
    ) as error:
        settings.load(cast("Any", {name: address}), {})
    assert "ter2" not in str(error.value)


def test_missing_setting_is_named_on_use() -> None:
    with pytest.raises(errors.ConfigError, match="grpc_url is not set; set MAESTRO_GRPC_URL"):
        settings.load({}, {}).needs("grpc_url")


def test_token_is_hidden_and_read_again(tmp_path: Path) -> None:
    assert "hunter2" not in repr(settings.load({"token": "hunter2"}, {}))
    file = tmp_path / "token"
    loaded = settings.load({"token_file": file}, {})
    with pytest.raises(errors.ConfigError, match="cannot be read"):
        loaded.current_token()
    file.write_text("one\n")
    assert loaded.current_token() == "one"
    file.write_text("two\n")
    assert loaded.current_token() == "two"


@pytest.mark.parametrize("content", [b"abc\xff", b"SECRET\nX-Evil: 1\n", "sécret".encode(), b"two words"])
def test_a_file_that_holds_no_token_is_named_and_not_quoted(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(errors.ConfigError, match=r"the token file .*token holds no token") as caught:
        settings.Settings(token_file=path).current_token()
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_empty_token_file_is_not_the_same_as_no_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("\n")
    with pytest.raises(errors.ConfigError, match=r"the token file .*token is empty; write the token into it"):
        settings.Settings(token_file=path).current_token()


def test_a_token_is_read_without_the_line_break_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("eyJhbGciOi.x-y_z~+/=\n")
    assert settings.Settings(token_file=path).current_token() == "eyJhbGciOi.x-y_z~+/="
