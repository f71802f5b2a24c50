import json

import pytest

from maestropy.journal import redact
from maestropy.journal.redact import HIDDEN

PEM = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIB\n-----END EC PRIVATE KEY-----"
SECRET = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "aHVudGVyMg=="}, "stringData": {"b": "hunter2"}}
MASKED = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": HIDDEN}, "stringData": {"b": HIDDEN}}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("postgres://maestro:hunter2@db:5432/x", f"postgres://maestro:{HIDDEN}@db:5432/x", id="dsn"),
        pytest.param("postgres://m:hunter2@x@db/x", f"postgres://m:{HIDDEN}@db/x", id="dsn-with-at-in-password"),
        pytest.param("host=db password=hunter2 dbname=x", f"host=db password={HIDDEN} dbname=x", id="dsn-keywords"),
        pytest.param("password='hunter 2' dbname=x", f"password='{HIDDEN}' dbname=x", id="dsn-quoted"),
        pytest.param("Authorization: Bearer hunter2hunter2", f"Authorization: Bearer {HIDDEN}", id="header"),
        pytest.param("Authorization: hunter2", f"Authorization: {HIDDEN}", id="header-without-scheme"),
        pytest.param("got eyJhbGci.eyJzdWIi.c2ln here", f"got {HIDDEN} here", id="jwt"),
        pytest.param("https://x/y?token=hunter2&a=1", f"https://x/y?token={HIDDEN}&a=1", id="query"),
        pytest.param(
            'bad body: {"clientSecret": "hunter2"', f'bad body: {{"clientSecret": "{HIDDEN}"', id="broken-json"
        ),
        pytest.param(r"x {\"token\":\"hunter2\"}", rf"x {{\"token\":\"{HIDDEN}\"}}", id="escaped-json"),
        pytest.param(f"key is {PEM}.", "key is [redacted EC PRIVATE KEY].", id="pem"),
        pytest.param("-----BEGIN PRIVATE KEY-----\\nhunter2", "[redacted PRIVATE KEY]", id="pem-without-end"),
        pytest.param(
            'data[password]: Invalid value: "hunter2": bad',
            f'data[password]: Invalid value: "{HIDDEN}": bad',
            id="field",
        ),
        pytest.param(
            r"data[tls.key]: Invalid value: \"hunter\\\"2\": bad",
            rf"data[tls.key]: Invalid value: \"{HIDDEN}\": bad",
            id="field-in-quotes",
        ),
        pytest.param('PASSWORD value "hunter2" is bad', f'PASSWORD value "{HIDDEN}" is bad', id="value-word"),
        pytest.param("DB_PASSWORD: hunter2", f"DB_PASSWORD: {HIDDEN}", id="variable"),
        pytest.param("api_key: hunter2 x", f"api_key: {HIDDEN} x", id="api-key"),
        pytest.param('apiKey="hunter2', f'apiKey="{HIDDEN}"', id="quote-without-end"),
        pytest.param("client_secret:\n  hunter2", f"client_secret:\n  {HIDDEN}", id="next-line"),
        pytest.param(r"client_secret:\n  hunter2", rf"client_secret:\n  {HIDDEN}", id="next-escaped-line"),
        pytest.param("used AKIAIOSFODNN7EXAMPLE here", f"used {HIDDEN} here", id="aws"),
        pytest.param("used ghp_16C7e42F292c6912E7710c838347Ae178B4a", f"used {HIDDEN}", id="forge"),
        pytest.param("https://a.blob/x?sig=hunter%2B2&se=2026", f"https://a.blob/x?sig={HIDDEN}&se=2026", id="sas"),
        pytest.param("X-Amz-Signature=hunter2&x=1", f"X-Amz-Signature={HIDDEN}&x=1", id="signed-url"),
        pytest.param("AccountKey=hunter2==;Suffix=x", f"AccountKey={HIDDEN};Suffix=x", id="account-key"),
        pytest.param("Key=1;SharedAccessKey=hunter2=", f"Key=1;SharedAccessKey={HIDDEN}", id="shared-access-key"),
        pytest.param("Ocp-Apim-Subscription-Key: hunter2", f"Ocp-Apim-Subscription-Key: {HIDDEN}", id="key-header"),
        pytest.param('token: "hunter2"', f'token: "{HIDDEN}"', id="quoted-token"),
        pytest.param(r"token: \"hunter2\" x", rf"token: \"{HIDDEN}\" x", id="quoted-token-escaped"),
        pytest.param("pwd: 'hunter2'", f"pwd: '{HIDDEN}'", id="quoted-pwd"),
        pytest.param("X-Vault-Token: hunter2", f"X-Vault-Token: {HIDDEN}", id="token-header"),
        pytest.param("curl -u admin:hunter2 https://x", f"curl -u admin:{HIDDEN} https://x", id="curl-user"),
        pytest.param('curl --user "admin:hunter2" x', f'curl --user "admin:{HIDDEN}" x', id="curl-user-quoted"),
        pytest.param(r"curl -u \"admin:hunter2\" x", rf"curl -u \"admin:{HIDDEN}\" x", id="curl-user-escaped"),
        pytest.param("x --proxy-user=a:hunter2 y", f"x --proxy-user=a:{HIDDEN} y", id="proxy-user"),
        pytest.param("oc login --token hunter2 x", f"oc login --token {HIDDEN} x", id="option"),
        pytest.param("x --db-password hunter2", f"x --db-password {HIDDEN}", id="option-with-prefix"),
        pytest.param("Set-Cookie: session=hunter2; Path=/", f"Set-Cookie: {HIDDEN}", id="cookie"),
        pytest.param(f"key AIza{'Sy0' * 12} x", f"key {HIDDEN} x", id="google-key"),
        pytest.param(json.dumps(SECRET), json.dumps(MASKED, separators=(",", ":")), id="manifest"),
    ],
)
def test_secret_in_text_is_redacted(text: str, shown: str) -> None:
    assert redact.text(text) == shown
    assert redact.fields({"message": text}) == {"message": shown}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('secrets "my-secret" not found', id="secret-name"),
        pytest.param("invalid token: expired", id="token-with-colon"),
        pytest.param("password authentication failed for user maestro", id="password-failed"),
        pytest.param("https://maestro.example:8090/path", id="port"),
        pytest.param('{"kind":"ConfigMap","data":{"a":"b"},"secretName":"x"}', id="config-map"),
        pytest.param("someone@example.com", id="mail"),
        pytest.param('spec.data: Required value: "x" is missing', id="field-of-another-name"),
        pytest.param("secret: not found", id="secret-with-colon"),
        pytest.param("--token or --token-file is needed, --password is not", id="options-in-a-sentence"),
        pytest.param("config=x design=y", id="end-of-a-word"),
        pytest.param("kubectl --user admin get x -u root", id="user-without-password"),
        pytest.param('no key "a" in token store', id="token-without-colon"),
    ],
)
def test_text_without_secret_is_unchanged(text: str) -> None:
    assert redact.text(text) == text


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        pytest.param({"password": "hunter2"}, {"password": HIDDEN}, id="password"),
        pytest.param({"db-password": b"hunter2"}, {"db-password": HIDDEN}, id="bytes"),
        pytest.param(
            {"x": {"clientSecret": "a", "secretName": "b"}},
            {"x": {"clientSecret": HIDDEN, "secretName": "b"}},
            id="nested",
        ),
        pytest.param({"x": {1: {"token": 7}}}, {"x": {1: {"token": HIDDEN}}}, id="numbers"),
        pytest.param({"token": "", "x": 1}, {"token": "", "x": 1}, id="unset"),
        pytest.param({"tokens": ["hunter2"], "token": ["a"]}, {"tokens": ["hunter2"], "token": [HIDDEN]}, id="list"),
        pytest.param(
            {"event": {"data": {"manifests": [SECRET]}}}, {"event": {"data": {"manifests": [MASKED]}}}, id="manifest"
        ),
        pytest.param(
            {"x": {"kind": "SecretList", "items": [{"data": {"a": "b"}}]}},
            {"x": {"kind": "SecretList", "items": [{"data": {"a": HIDDEN}, "kind": "Secret"}]}},
            id="list-of-secrets",
        ),
        pytest.param({"err": ValueError("token=hunter2")}, {"err": f"token={HIDDEN}"}, id="exception"),
    ],
)
def test_secret_in_field_is_redacted(fields: dict[str, object], shown: dict[str, object]) -> None:
    assert redact.fields(fields) == shown


def test_secret_manifest_inside_an_annotation_is_redacted() -> None:
    applied = {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"spec": [SECRET]})}}
    cleaned = redact.fields({"extensions": {"metadata": json.dumps(applied)}})
    assert "hunter2" not in str(cleaned)
    assert "aHVudGVyMg==" not in str(cleaned)


@pytest.mark.parametrize(
    "text",
    [
        "password",
        "data.",
        "data[",
        "password:",
        "api_key ",
        'token="',
        "secret\\",
        "xpwd=",
        "--",
        "-u a",
        "cookie:",
        "sig=",
    ],
)
def test_repeated_name_takes_no_square_of_time(text: str) -> None:
    """One of these took minutes with names of any length, which the timeout of the tests ends."""
    redact.text(text * (300_000 // len(text)))


def test_deeply_nested_secret_is_redacted() -> None:
    deep: dict[str, object] = {"password": "hunter2"}
    for _ in range(2000):
        deep = {"x": deep}
    assert "hunter2" not in str(redact.fields(deep))


def test_fields_without_secrets_are_not_copied() -> None:
    fields = {"resourceID": "1", "extensions": {"metadata": '{"name":"nginx"}', "resourceversion": 1}, "QoS": 1}
    assert redact.fields(fields) is fields


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ('Failed to apply manifest: secrets "s" is forbidden: User "agent" cannot create', f"{HIDDEN}: is forbidden"),
        ('Secret "s" is invalid: data[a]: Invalid value: "hunter2": field is immutable',
         f"{HIDDEN}: is invalid, field is immutable"),
        ("hunter2", HIDDEN),
    ],
)  # fmt: skip
def test_message_about_a_secret_keeps_only_what_kind_of_error_it_is(message: str, shown: str) -> None:
    condition = {"type": "Applied", "status": "False", "message": message}
    status = {"resourceMeta": {"kind": "Secret", "name": "s"}, "conditions": [condition]}
    (cleaned,) = redact.fields({"x": {"resourceStatus": [status]}})["x"]["resourceStatus"]  # type: ignore[index]
    assert cleaned["conditions"] == [{**condition, "message": shown}]
