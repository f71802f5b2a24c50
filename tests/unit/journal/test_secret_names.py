"""Every part that hides secrets by their names hides those of the one list."""

import pytest

from maestropy.console import credentials
from maestropy.diagnose.redaction.redact import LogRedactor, Redactor
from maestropy.journal import redact, secret_names

PLAIN = "hunter2"


@pytest.mark.parametrize("name", secret_names.IN_LOGS)
def test_names_of_logs_are_hidden_in_logs_manifests_and_archives(name: str) -> None:
    assert PLAIN not in str(redact.fields({f"db_{name}": PLAIN}))
    assert PLAIN not in str(credentials.named({f"db_{name}": PLAIN}))
    assert PLAIN not in LogRedactor(Redactor()).line(f'{{"msg":"x","db_{name}":"{PLAIN}"}}')
    assert PLAIN not in str(Redactor().document({"kind": "Custom", "metadata": {}, "spec": {f"db_{name}": PLAIN}}))


@pytest.mark.parametrize("name", secret_names.IN_MANIFESTS)
def test_names_of_manifests_are_hidden_in_manifests_and_archives(name: str) -> None:
    assert PLAIN not in str(credentials.named({f"db_{name}": PLAIN}))
    assert PLAIN not in str(Redactor().document({"kind": "Custom", "metadata": {}, "spec": {f"db_{name}": PLAIN}}))


@pytest.mark.parametrize("name", ["bypass", "compass", "secretName", "tokenPath"])
def test_names_that_hold_no_secret_stay(name: str) -> None:
    assert credentials.named({name: PLAIN}) == {name: PLAIN}
