"""200 secrets, planted wherever a system can hold one, are not in the archive; and collecting writes nothing."""

import base64
import contextlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from maestropy import Work
from maestropy.diagnose import archive
from maestropy.diagnose.redaction import detectors
from maestropy.kube.client import KubeClient
from maestropy.kube.config import load as config
from maestropy.kube.request import Patch, ResourceType
from maestropy.sandbox.fleet import Fleet
from maestropy.trace.access.cluster import DEPLOYMENTS
from maestropy.trace.access.pod_logs import PODS
from tests import waiting
from tests.stack import harness, test_diagnose
from tests.unit.diagnose import planted, test_named_secrets

CONFIG_MAPS = ResourceType(group="", version="v1", plural="configmaps", kind="ConfigMap", namespaced=True)
NAMESPACES = ResourceType(group="", version="v1", plural="namespaces", kind="Namespace", namespaced=False)
EVENTS = ResourceType(group="", version="v1", plural="events", kind="Event", namespaced=True)
_TOMBSTONE = (
    "INSERT INTO status_events (id, created_at, resource_id, payload, status_event_type, reconciled_date)"
    " VALUES ('x', now(), 'gone', $1::jsonb, 'StatusDelete', now())"
)
NOTATIONS = tuple(enumerate(test_named_secrets.NOTATIONS))
Place = Callable[[str, int], dict[str, Any]]


def named(kind: str, number: int, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": f"o-{number}", "namespace": "default"}, **fields}


def pod_template(**container: Any) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "registry.example/x:1", **container}]},
    }


def deployment(number: int, *, annotations: dict[str, str] | None = None, **container: Any) -> dict[str, Any]:
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": pod_template(**container)}
    body = {**named("Deployment", number, spec=spec), "apiVersion": "apps/v1"}
    body["metadata"]["annotations"] = annotations or {}
    return body


def teapot(number: int, **spec: Any) -> dict[str, Any]:
    """An object of a kind that the cluster does not have: its manifest stays in the database, with an error."""
    return {**named("Teapot", number, spec=spec), "apiVersion": "example.com/v1"}


def encoded(secret: str) -> str:
    return base64.b64encode(secret.encode()).decode()


MANIFESTS: tuple[Place, ...] = (
    lambda secret, number: named("Secret", number, data={"k": encoded(secret)}),
    lambda secret, number: named("Secret", number, stringData={"k": secret}),
    lambda secret, number: named("ConfigMap", number, data={"k": secret}),
    lambda secret, number: named("ConfigMap", number, data={"app.yaml": f"db:\n  password: {secret}\n"}),
    lambda secret, number: named("ConfigMap", number, binaryData={"k": encoded(secret)}),
    lambda secret, number: deployment(number, env=[{"name": "API", "value": secret}]),
    lambda secret, number: deployment(number, args=["serve", f"--dsn=postgres://u:{secret}@db/x"]),
    lambda secret, number: deployment(number, args=["--auth", secret]),
    lambda secret, number: deployment(number, command=["sh", "-c", f"curl -H 'X: {secret}' http://x"]),
    lambda secret, number: deployment(number, annotations={"example.com/payload": secret}),
    lambda secret, number: deployment(
        number, annotations={"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"data": {"k": secret}})}
    ),
    lambda secret, number: deployment(
        number, livenessProbe={"httpGet": {"path": "/", "port": 1, "httpHeaders": [{"name": "A", "value": secret}]}}
    ),
    lambda secret, number: teapot(number, password=secret),
    lambda secret, number: teapot(number, note=f"the login is {secret}"),
    lambda secret, number: teapot(number, plain=secret),
    lambda secret, number: teapot(number, url=f"https://user:{secret}@registry.example/v2"),
    lambda secret, number: teapot(number, deep={"list": [{"list": [[{"x": secret}]]}]}),
    lambda secret, number: teapot(number, text=json.dumps({"kind": "Secret", "data": {"k": secret}})),
    lambda secret, number: teapot(number, cloudInit=f"#cloud-config\nusers:\n- {secret}\n"),
    lambda secret, number: teapot(number, **{secret.replace("/", "-"): "a secret as a key"}),
    # The API server repeats the value in its error, which goes to the log and into the status.
    lambda secret, number: named("Service", number, spec={"type": secret, "ports": [{"port": 1}]}),
    lambda secret, number: {
        **named("ManifestWork", number),
        "apiVersion": "work.open-cluster-management.io/v1",
        "spec": {"workload": {"manifests": [named("Secret", number + 1000, stringData={"k": secret})]}},
    },
)

LINES: tuple[Callable[[str], str], ...] = (
    lambda secret: f"I1117 10:00:00.000000       1 x.go:1] connecting with {secret}",
    lambda secret: f'I1117 10:00:00.000000       1 x.go:1] "login" password="{secret}"',
    lambda secret: f"E1117 10:00:00.000000       1 x.go:1] dial postgres://maestro:{secret}@db:5432/maestro failed",
    lambda secret: f'{{"level":"error","ts":"2026-11-17T10:00:00Z","msg":"x","token":"{secret}"}}',
    lambda secret: f'{{"ts":"2026-11-17T10:00:00Z","msg":"Authorization: Bearer {secret}"}}',
    lambda secret: f"2026-11-17T10:00:00Z stderr F GET /?sig={secret}&x=1",
    lambda secret: (
        "-----BEGIN PRIVATE KEY-----\n" + "\n".join((secret[:20], secret[20:])) + "\n-----END PRIVATE KEY-----"
    ),
    lambda secret: (
        f"I1117 10:00:00.000000       1 x.go:1] event {json.dumps(json.dumps({'data': {'apiKey': secret}}))}"
    ),
    lambda secret: f"panic: goroutine 1 [running]: main.login(0x1, {secret!r})",
)


def later(number: int) -> str:
    """Return a plain word in the place of a secret: neither its format nor its entropy gives it away."""
    return f"zebra{'abcdefghij'[number // 10]}{'abcdefghij'[number % 10]}otter"


async def plant_in_works(running: Fleet, secrets: Iterator[str]) -> list[str]:
    """Plant in the manifests, labels and annotations of works, and wait until the agent has dealt with all."""
    used: list[str] = []
    works = running.client.works("cluster1")
    for number, place in enumerate(MANIFESTS):
        several = [next(secrets) for _ in range(4)]
        used += several
        work = Work(f"w-{number}")
        for index, secret in enumerate(several):
            work = work.add(place(secret, number * 10 + index))
        await works.apply(work)
    marked = [next(secrets) for _ in range(4)]
    used += marked
    label = "".join(char for char in marked[0] if char.isalnum())[:60]
    work = Work("marked", labels={"team": label}, annotations={"example.com/note": marked[1]})
    await works.apply(work.add(named("ConfigMap", 9000)).with_annotations({"x": marked[2], "y": f"is {marked[3]}"}))

    async def are_reported() -> bool:
        names = [f"w-{number}" for number in range(len(MANIFESTS))] + ["marked"]
        return all([(await works.get(name)).condition("Applied") is not None for name in names])

    await waiting.until(are_reported, what="the status of all works")
    return used


async def plant_on_cluster(running: Fleet, secrets: Iterator[str]) -> list[str]:
    """Plant in objects that the agent did not write: its own pods, events, live objects that somebody changed."""
    used = [next(secrets) for _ in range(12)]
    async with KubeClient(config.from_kubeconfig([running.kubeconfigs["cluster1"]])) as kube:
        await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "maestro-agent"}})
        metadata = {"name": "agent", "namespace": "maestro-agent", "labels": {"app": "maestro-agent"}}
        template = pod_template(env=[{"name": "A", "value": used[0]}], args=[f"--token={used[1]}", used[2]])
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {**metadata, "annotations": {"a": used[3]}}}
        selector = {"matchLabels": {"app": "x"}}
        await kube.create(DEPLOYMENTS, {**body, "spec": {"replicas": 0, "selector": selector, "template": template}})
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "name": "agent-1"}}
        await kube.create(PODS, {**pod, "spec": pod_template(env=[{"name": "B", "value": used[4]}])["spec"]})
        for number, secret in enumerate(used[5:9]):
            about = {"kind": "Pod", "namespace": "maestro-agent", "name": "agent-1"}
            event = {"apiVersion": "v1", "kind": "Event", "involvedObject": about, "reason": "Failed"}
            names = {"name": f"e-{number}", "namespace": "maestro-agent", "annotations": {"x": secret}}
            await kube.create(EVENTS, {**event, "metadata": names, "message": f"pull with {secret} failed"})
        change = {"metadata": {"annotations": {"by-hand": used[9]}}, "data": {"more": used[10], "other": used[11]}}
        await kube.patch(CONFIG_MAPS, "o-9000", change=Patch(body=change), namespace="default")
    return used


async def plant_in_database(running: Fleet, secrets: Iterator[str]) -> list[str]:
    """Plant where a broken client or an agent could: unknown fields, messages, deletions, the history."""
    used = [next(secrets) for _ in range(10)]
    odd = {"note": used[0], "extra": {"connectionString": f"x;AccountKey={used[1]};y"}}
    message = {"data": {"conditions": [{"type": "Applied", "status": "False", "message": f"denied: {used[2]}"}]}}
    lost = {"metadata": {"name": "gone"}, "data": {"manifests": [named("Secret", 1, stringData={"k": used[3]})]}}
    detail = json.dumps({"note": used[4], "token": used[5]})
    statements = (
        ("UPDATE resources SET payload = payload || $1::jsonb WHERE payload->'metadata'->>'name' = 'w-0'", odd),
        ("UPDATE resources SET status = status || $1::jsonb WHERE payload->'metadata'->>'name' = 'w-1'", message),
        (_TOMBSTONE, lost),
        ("UPDATE consumers SET labels = $1::jsonb", {"a": used[6], "password": used[7]}),
    )  # fmt: skip
    for statement, body in statements:
        await harness.sql(running.dsn, statement, json.dumps(body))
    await harness.sql(
        running.dsn,
        "INSERT INTO maestropy_history (at, kind, subject_id, consumer_name, source, version, actor, address,"
        " operation_id, result, detail) VALUES (now(), 'work.updated', 'x', 'cluster1', 's', 1, $1, $2, '', '', $3)",
        f"user {used[8]}", f"https://u:{used[9]}@host", detail,
    )  # fmt: skip
    return used


def plant_in_logs(running: Fleet, secrets: Iterator[str]) -> list[str]:
    used = [next(secrets) for _ in range(5 * len(LINES) + 5)]
    rest = iter(used)
    text = "".join(line(next(rest)) + "\n" for line in LINES for _ in range(5))
    # What was found later, in the notations of the unit tables: each with a word that nothing else gives away.
    text += "".join(line.replace(test_named_secrets.PLAIN, later(number)) + "\n" for number, line in NOTATIONS)
    with (running.folder / "server.log").open("a", encoding="utf-8") as log:
        log.write(text)
    rows = [f'2026-11-17T10:00:00Z,maestro-1,"{{""msg"":""password={secret}""}}"' for secret in rest]
    (running.folder / "export.csv").write_text("\n".join(["timestamp,pod,log", *rows]) + "\n", encoding="utf-8")
    return used


@contextlib.contextmanager
def endpoint(answers: dict[str, str]) -> Iterator[str]:
    """Serve texts, as the health and metrics ports of a process do."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answers[self.path].encode())

        def log_message(self, *_: Any) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_detected_texts_are_no_words_of_this_project() -> None:
    """A detector that hides everything would find all secrets as well."""
    sources = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))
    tokens = {word for path in sources for word in path.read_text(encoding="utf-8").split()}
    hidden = [token for token in tokens if detectors.is_suspect(token)]
    assert len(tokens) > 5000
    assert len(hidden) < len(tokens) / 200


@pytest.mark.long
async def test_none_of_200_planted_secrets_is_in_the_archive(tmp_path: Path) -> None:
    every = planted.secrets(200)
    secrets = iter(every)
    target = tmp_path / "a.tar.zst"
    async with test_diagnose.running_fleet(tmp_path) as running:
        used = await plant_in_works(running, secrets)
        used += await plant_on_cluster(running, secrets)
        used += await plant_in_database(running, secrets)
        used += plant_in_logs(running, secrets)
        told = list(secrets)
        used += told
        ready = "".join(f"[-]database failed: dial with {secret}\n" for secret in told[::2])
        metrics = "".join(f'maestropy_broker_connected{{broker="{secret}"}} 0\n' for secret in told[1::2])
        with endpoint({"/readyz?verbose": ready, "/metrics": metrics}) as url:
            choice = test_diagnose.options(running, target, health_urls=(url,), metrics_urls=(url,))
            await test_diagnose.collected(choice)
        # The planting itself has to be seen: without redaction, the same files would hold the secrets.
        raw = await visible(running, used)
    assert used == every
    assert len(told) > 10
    assert raw > 100
    assert planted.leaked(target, every) == []
    assert planted.leaked(target, [later(number) for number, _ in NOTATIONS]) == []
    with archive.opened(target, folder=tmp_path / "x") as opened:
        held = "".join((opened.folder / name).read_text(errors="replace") for name in opened.files)
    assert held.count("[redacted") > 150
    analysis = await test_diagnose.analysed(target, tmp_path / "y")
    assert len(analysis.works) > len(MANIFESTS)


async def visible(running: Fleet, secrets: list[str]) -> int:
    """Return how many of the secrets the database and the logs hold, as they are or in base64."""
    tables = ("resources", "status_events", "consumers", "maestropy_history")
    texts = [str([dict(row) for row in await harness.sql(running.dsn, f"SELECT * FROM {table}")]) for table in tables]
    texts += [path.read_text(errors="replace") for path in running.folder.glob("*.log")]
    whole = "".join(texts)
    return sum(secret in whole or encoded(secret) in whole for secret in secrets)


@pytest.mark.long
async def test_collecting_writes_nothing_on_the_cluster(tmp_path: Path) -> None:
    async with test_diagnose.running_fleet(tmp_path) as running:
        await test_diagnose.with_fault(running)
        async with KubeClient(config.from_kubeconfig([running.kubeconfigs["cluster1"]])) as kube:
            before = await everything(kube)
            rows = await harness.sql(running.dsn, "SELECT id, version, updated_at FROM resources ORDER BY id")
            await test_diagnose.collected(test_diagnose.options(running, tmp_path / "a.tar.zst"))
            assert await everything(kube) == before
            assert await harness.sql(running.dsn, "SELECT id, version, updated_at FROM resources ORDER BY id") == rows


async def everything(kube: KubeClient) -> dict[str, str]:
    """Return the resource versions of all objects that a collection could touch."""
    applied = ResourceType(
        group="work.open-cluster-management.io", version="v1", plural="appliedmanifestworks",
        kind="AppliedManifestWork", namespaced=False,
    )  # fmt: skip
    found = {}
    for kind in (CONFIG_MAPS, NAMESPACES, EVENTS, PODS, DEPLOYMENTS, applied):
        for item in await kube.list(kind):
            metadata = item["metadata"]
            found[f"{kind.plural} {metadata.get('namespace')} {metadata['name']}"] = metadata["resourceVersion"]
    return found
