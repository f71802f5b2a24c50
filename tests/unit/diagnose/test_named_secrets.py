"""A value that a name gives away is hidden in every notation, and sentences that verdicts rest on stay."""

import time

import pytest

from maestropy.diagnose.redaction import detectors
from maestropy.diagnose.redaction.redact import LogRedactor, Redactor

PLAIN = "hunter2"

NOTATIONS = (
    '{"name":"password","value":"hunter2"}',
    '{"name":"password","type":"t","value":"hunter2"}',
    'env: {"name":"DB","value":"hunter2"},{"name":"B","value":"x"}',
    '{"msg":"pod","env":[{"name":"DB_PASSWORD","value":"hunter2","x":1}]}',
    r'payload="{\"env\":[{\"name\":\"DB_PASSWORD\",\"value\":\"hunter2\"}]}"',
    r'payload="{\"value\":\"hunter2\",\"name\":\"DB_PASSWORD\"}"',
    "env=[{Name:DB_PASSWORD Value:hunter2 ValueFrom:nil}]",
    'env=[]v1.EnvVar{{Name:"DB", Value:"hunter2"}}',
    "pass=hunter2",
    "DB_PASS=hunter2",
    "dbPass: hunter2",
    '{"pass":"hunter2"}',
    "'pass': 'hunter2'",
    "pwd: hunter2",
    "passwd: hunter2",
    "{'password': 'hunter2', 'user': 'u'}",
    "map[password:hunter2 user:u]",
    "map[token:hunter2 user:u]",
    "&{User:u Password:hunter2 Host:h}",
    'struct{Password:"hunter2"}',
    "apiVersion: v1, kind: Secret, metadata: {name: n}, data: {k: hunter2}",
    "{apiVersion: v1, kind: Secret, stringData: {k: hunter2}}",
    r"applied apiVersion: v1\nkind: Secret\nstringData:\n  k: hunter2\n",
    r'event "{\"kind\":\"Secret\",\"data\":{\"k\":\"hunter2\"}}"',
    '{"msg":"apiVersion: v1\\nkind: Secret\\nstringData:\\n  k: hunter2\\n"}',
    "<password>hunter2</password>",
    '<db:adminPassword encoding="plain">hunter2</db:adminPassword>',
    '<user password="hunter2"/>',
    '<add key="DbPassword" value="hunter2" />',
    '<property name="password" value="hunter2"/>',
    "Proxy-Authorization: Basic hunter2hunter2",
    "Proxy-Authorization: Negotiate hunter2",
    "map[Authorization:[Token hunter2] Accept:[*/*]]",
    'authorization: Digest username="u", response="hunter2"',
    "login with password hunter2 failed",
    "login with password 'hunter2' failed",
    "the password is hunter2",
    "Password was: hunter2",
    'secret key is "hunter2"',
    "the api key is hunter2",
    "token is 'hunter2'",
    "password set to hunter2",
    "machine db.example login admin password hunter2",
    "ALTER USER maestro WITH PASSWORD 'hunter2'",
    "CREATE USER m IDENTIFIED BY 'hunter2'",
    "password => hunter2",
    ':password=>"hunter2"',
    'password := "hunter2"',
    "password = hunter2",
    "GET /login%3Fuser%3Du%26password%3Dhunter2%26x%3D1",
    "GET /?q=%7B%22password%22%3A%22hunter2%22%7D",
    "GET /?p%61ssword=hunter2",
    "GET /?q=password%253Dhunter2",
    "pass\u200bword=hunter2",
    "pass\0word: hunter2",
    "pa\u00adsswd=hunter2",
    r'{"\u0070assword":"hunter2"}',
    "Bearer abcdefgh12345!hunter2",
    "password=abc!hunter2",
    "Authorization: Bearer abcdefgh$hunter2",
)

KEPT = (
    'secrets "db-password" not found',
    "password authentication failed for user maestro",
    "the password is wrong; renew it",
    "token is expired since 10:00, and the token was not renewed",
    'secret "pull" is forbidden: exceeded quota',
    'MountVolume.SetUp failed for volume "token" : secret "token-x" not found',
    'is invalid: spec.selector: Invalid value: "app": field is immutable',
    "the agent logs in with password authentication",
    'Failed to apply manifest: the server doesn\'t have a resource type "Teapot"',
    "GET /api/maestro/v1/resource-bundles?search=consumer_name%20%3D%20%27c1%27",
    'User "system:serviceaccount:a:b" cannot get resource "secrets" in API group "" in the namespace "d"',
    "30 tests pass: 30, fail: 0",
    "PASS: TestAll",
    'name="nginx" value="3"',
    '{"name":"replicas","fieldValue":{"type":"Integer","integer":3}}',
    "unable to retrieve some image pull secrets (pull); attempting to pull the image may not succeed.",
)


@pytest.mark.parametrize("line", NOTATIONS)
def test_value_is_hidden_in_every_notation(line: str) -> None:
    shown = LogRedactor(Redactor()).line(line)
    assert PLAIN not in shown
    assert "[redacted" in shown
    assert detectors.clean(shown) == shown


@pytest.mark.parametrize("line", KEPT)
def test_sentence_that_verdicts_rest_on_stays(line: str) -> None:
    assert LogRedactor(Redactor()).line(line) == line


@pytest.mark.parametrize(
    "lines",
    [
        ("password:", PLAIN),
        ("  password: |-", f"    {PLAIN}"),
        ('"password":', f'  "{PLAIN}",'),
        ("<password>", PLAIN, "</password>"),
        ("the password is", "", PLAIN),
        ("I1117 10:00:00.000000       1 x.go:1] password:", f"I1117 10:00:00.000000       1 x.go:1] {PLAIN}"),
    ],
)
def test_value_on_the_next_line_is_hidden(lines: tuple[str, ...]) -> None:
    redactor = LogRedactor(Redactor())
    assert not any(PLAIN in redactor.line(line) for line in lines)


def test_record_after_a_name_without_a_value_stays() -> None:
    redactor = LogRedactor(Redactor())
    redactor.line("I1117 10:00:00.000000       1 x.go:1] password:")
    record = 'I1117 10:00:00.000000       1 x.go:1] "Publishing" resourceID="r"'
    assert redactor.line(record) == record


@pytest.mark.parametrize(
    "part", ["password ", "name:value ", "<pass>", "%3D", 'password"', "data: kind: Secret ", "token is "]
)
def test_time_does_not_grow_with_the_square(part: str) -> None:
    text = part * (60_000 // len(part))
    begun = time.process_time()
    detectors.clean(text)
    assert time.process_time() - begun < 5
