"""`maestro __complete SHELL WORDS…`: print the candidates for the last word. The scripts of the shells call it.

It never prints an error: pressing Tab must not disturb the command line.
"""

import os
import sys
from collections.abc import Mapping, Sequence

from maestropy.cli import environments
from maestropy.cli.client.connection import GrpcFlags, RestFlags, open_client
from maestropy.cli.completion import candidates
from maestropy.cli.completion.candidates import NamesSource
from maestropy.untrusted import printable

_TIMEOUT = "2s"
_MOST = 400
"""The names that are read at most; with the consumer of a work typed, only its works are read."""


def run(arguments: Sequence[str]) -> int:
    """Print the candidates for a command line; the first argument is the shell."""
    from maestropy.cli.command_tree import app

    shell, *words = arguments
    words = candidates.joined(words) if shell == "bash" else list(words)
    try:
        answer = candidates.complete(app, words, names=_NAMES)
    except Exception:  # noqa: BLE001 - also a server that does not answer, or a library that is not installed
        return 1
    # bash completes only what stands behind an equals sign.
    cut = words[-1].rpartition("=")[0] + "=" if shell == "bash" and words and words[-1].startswith("--") else ""
    for candidate in answer:
        line = printable.escape(candidate.text) + ("\t" + candidate.description if candidate.description else "")
        sys.stdout.write(f"{line.removeprefix(cut) if len(cut) > 1 else line}\n")
    return 0


def _environments(prefix: str, _: Mapping[str, str]) -> list[str]:
    named = environments.read(environments.default_path(os.environ)).named
    return [name for name in named if name.startswith(prefix)]


def _consumers(prefix: str, given: Mapping[str, str]) -> list[str]:
    with open_client(_rest(given)) as client:
        items = client.consumers.page(size=_MOST, search=_begins("name", prefix), order_by="name")["items"]
    names = [str(item.get("name")) for item in items or ()]
    return [name for name in names if name.startswith(prefix)]


def _works(prefix: str, given: Mapping[str, str]) -> list[str]:
    consumer, slash, _ = prefix.partition("/")
    with open_client(_rest(given), GrpcFlags()) as client:
        search = "" if slash else _begins("consumer_name", consumer)
        page = client.resource_bundles.page(size=_MOST, search=search, consumer=consumer if slash else "")
    named = [(item.get("consumer_name"), (item.get("metadata") or {}).get("name")) for item in page["items"] or ()]
    full = sorted({f"{owner}/{name}" for owner, name in named if name})
    return [name for name in full if name.startswith(prefix)]


def _begins(field: str, prefix: str) -> str:
    # Only characters of names: others would be wildcards or quotes of the search.
    is_plain = prefix.replace("-", "").isalnum() and prefix.isascii()
    return f"{field} like '{prefix}%'" if is_plain else ""


def _rest(given: Mapping[str, str]) -> RestFlags:
    """Return the connection flags of the command line, with a short timeout."""
    return RestFlags(
        rest_url=given.get("--rest-url"),
        env=given.get("--env"),
        insecure_skip_verify=True if "--insecure-skip-verify" in given else None,
        timeout=_TIMEOUT,
    )


_NAMES: Mapping[str, NamesSource] = {"consumers": _consumers, "environments": _environments, "works": _works}
