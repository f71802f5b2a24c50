"""The names of keys whose values are secrets: the one list for logs, pages and archives. Pure."""

import re
from functools import lru_cache
from typing import Final

IN_LOGS: Final = (
    "password", "passwd", "passphrase", "pwd", "token", "secret", "authorization", "apikey", "privatekey", "accesskey",
    "accountkey", "secretkey", "sharedkey", "signingkey", "subscriptionkey", "credential", "credentials", "cookie",
)  # fmt: skip
"""The ends of names that hold a secret wherever they stand."""
IN_MANIFESTS: Final = (
    *IN_LOGS, "passcode", "pass", "bearer", "accesskeyid", "sshkey", "keydata", "creds", "connectionstring",
    "kubeconfig", "dsn", "auth", "auths", "pw",
)  # fmt: skip
"""With those that mean something harmless in a log, such as a test that did pass, and a credential in a manifest."""
_HARMLESS: Final = ("bypass", "compass")


@lru_cache(maxsize=4096)
def is_secret_in_log(key: object) -> bool:
    """Return whether the value of a field of a log record is a secret."""
    # The end of the key counts: `clientSecret` holds a secret, `secretName` only names one.
    return plain(key).endswith(IN_LOGS)


def is_secret_in_manifest(key: str) -> bool:
    """Return whether the value of a member of a manifest is a secret; in doubt it is."""
    return plain(key).endswith(IN_MANIFESTS) and not plain(key).endswith(_HARMLESS)


def plain(key: object) -> str:
    """Return the letters of a name, in lower case."""
    return re.sub(r"[^a-z]", "", str(key).lower())
