"""Speaks with the Go programs: Maestro's work client and an agent made of the Go SDK.

Both read JSON commands and print JSON lines; here they become Python calls and waits.
"""

import itertools
import json
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.peers.peer_build import Programs
from tests.peers.peer_processes import end, tail
from tests.peers.peer_servers import Server

Json = dict[str, Any]


class Refused(Exception):
    """The Go work client returned an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.reason: str = error["reason"]
        self.code: int = error["code"]


class Lines:
    """A program, everything it has printed so far, and a way to wait for more."""

    def __init__(self, command: Sequence[str | Path], *, log: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self._printed: list[Json] = []
        self._news = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the program; calling it twice is fine."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        end(self._process)
        self._reader.join()
        self._process.stdin.close()
        self._process.stdout.close()

    def say(self, document: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(document) + "\n")
        self._process.stdin.flush()

    def printed(self) -> list[Json]:
        with self._news:
            return list(self._printed)

    def wait(self, wanted: Callable[[Json], bool], *, what: str, seconds: float = 60) -> Json:
        """Return the first line, already printed or still to come, that is wanted."""
        seen = 0

        def look() -> Json | None:
            nonlocal seen
            fresh, seen = self._printed[seen:], len(self._printed)
            return next(filter(wanted, fresh), None)

        found: list[Json] = []

        def settled() -> bool:
            match = look()
            if match is not None:
                found.append(match)
            return bool(found) or self._ended

        with self._news:
            self._news.wait_for(settled, timeout=seconds)
        assert found, f"no {what} within {seconds} s; the program's log ends with:\n{tail(self._log, lines=15)}"
        return found[0]

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self._printed.append(json.loads(line))
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()


class WorkClient(Lines):
    """Maestro's Go work client for one source."""

    def __init__(self, programs: Programs, server: Server, *, source: str, log: Path) -> None:
        command: list[str | Path] = [
            programs.workclient,
            "-rest",
            server.rest_url,
            "-grpc",
            server.grpc_addr,
            "-source",
            source,
        ]
        super().__init__(command, log=log)
        self.source = source
        self._numbers = itertools.count(1)

    def create(self, namespace: str, work: Json) -> Json:
        return dict(self._ask("create", namespace=namespace, work=work)["work"])

    def get(self, namespace: str, name: str) -> Json:
        return dict(self._ask("get", namespace=namespace, name=name)["work"])

    def patch(self, namespace: str, old: Json, new: Json) -> Json:
        """Patch as callers of the Go client do: with the version of `old`, and the content of `new`."""
        name = old["metadata"]["name"]
        return dict(self._ask("patch", namespace=namespace, name=name, **{"from": old, "to": new})["work"])

    def delete(self, namespace: str, name: str) -> None:
        self._ask("delete", namespace=namespace, name=name)

    def list(self, namespace: str, *, selector: str = "", limit: int = 0, token: str = "") -> tuple[list[Json], str]:
        """Return the works and the token of the next page, empty on the last."""
        options = {"selector": selector, "limit": limit, "continue": token}
        answer = self._ask("list", namespace=namespace, **options)
        return answer.get("works", []), answer.get("continue", "")

    def watch(self, namespace: str, *, selector: str = "") -> str:
        """Begin to watch; the id returned tells this watch's events from others'."""
        return str(self._ask("watch", namespace=namespace, selector=selector)["id"])

    def wait_watched(self, watch: str, wanted: Callable[[Json], bool], *, what: str, seconds: float = 60) -> Json:
        return self.wait(lambda line: line.get("watch") == watch and wanted(line), what=what, seconds=seconds)

    def _ask(self, op: str, **details: Any) -> Json:
        number = str(next(self._numbers))
        self.say({"id": number, "op": op, **details})
        answer = self.wait(lambda line: line.get("id") == number, what=f"answer to {op}")
        if "error" in answer:
            raise Refused(answer["error"])
        return answer


class Agent(Lines):
    """An agent of the Go SDK for one cluster, without a cluster."""

    def __init__(self, programs: Programs, server: Server, *, cluster: str, log: Path) -> None:
        super().__init__([programs.fakeagent, "-grpc", server.broker_addr, "-cluster", cluster], log=log)
        # Its first resync has been answered once the request counts as sent: the broker answers before it returns.
        self.wait_event("sent", type_ends="spec.resync_request")

    def wait_event(
        self, event: str, *, type_ends: str, resource: str | None = None, version: int | None = None
    ) -> Json:
        """Return the first CloudEvent `received` or `sent` of that type, resource and version."""

        def wanted(line: Json) -> bool:
            body = line.get("cloudevent", {})
            return (
                line["event"] == event
                and body["type"].endswith(type_ends)
                and resource in (None, body.get("resourceid"))
                and version in (None, body.get("resourceversion"))
            )

        what = f"{type_ends} {event} by the agent for {resource} version {version}"
        return dict(self.wait(wanted, what=what)["cloudevent"])

    def report(self, resource: str, message: str) -> None:
        """Send a fresh status whose Available condition carries this message."""
        self.say({"op": "report", "uid": resource, "message": message})

    def hold(self) -> None:
        """Receive, but report nothing until released."""
        self.say({"op": "hold"})

    def release(self) -> None:
        self.say({"op": "release"})


def rest(server: Server, method: str, path: str, body: Json | None = None) -> Json:
    """Call the REST API; an HTTP error raises urllib's HTTPError."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.rest_url}/api/maestro/v1{path}", data, headers, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        text = answer.read()
    return json.loads(text) if text else {}
