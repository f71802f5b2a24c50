"""Both REST APIs answer every question alike, but for what is intended."""

import itertools
import json
import urllib.parse
from typing import Any

import pytest

from tests.peers.differential import rest_cases, twin_events
from tests.peers.differential.comparing import Mismatch, compare
from tests.peers.differential.intended import refute
from tests.peers.differential.rest_cases import BUNDLES, CONSUMERS, Question, about
from tests.peers.differential.twins import BASE, Answer, Twin

pytestmark = pytest.mark.peers
SEED = 20260215


@pytest.fixture(scope="module")
def seeded(twins: tuple[Twin, Twin]) -> tuple[Twin, Twin]:
    """Both with the same bundles and consumers."""
    for twin in twins:
        for number, (app, tier) in enumerate(itertools.product("abc", ("web", "db")), 1):
            name = f"bundle{number:02}"
            made = twin_events.spec("create_request", name)
            meta = {"name": f"work{number}", "namespace": "cluster1", "labels": {"app": app, "tier": tier}}
            twin_events.put(made, metadata=twin_events.text(json.dumps(meta)))
            assert twin.publish(twin_events.request(made)).code == "OK"
            twin.settle_events()
        bare = twin_events.put(twin_events.spec("create_request", "bare"), metadata=None)
        assert twin.publish(twin_events.request(bare)).code == "OK"
        twin.settle_events()
        changed = twin_events.request(twin_events.spec("update_request", "bundle02", version=1))
        assert twin.publish(changed).code == "OK"
        twin.settle_events()
        for version, name in ((1, "bundle01"), (2, "bundle02")):
            assert twin.report(twin_events.request(twin_events.status(name, version=version))).code == "OK"
        assert twin.publish(twin_events.request(twin_events.spec("delete_request", "bundle03"))).code == "OK"
        for name in ("b", "other"):
            twin.ask("POST", CONSUMERS, json.dumps({"name": name, "labels": {"env": name}}).encode())
        twin.settle()
    return twins


def asked(pair: tuple[Twin, Twin], questions: list[Question]) -> list[Mismatch]:
    found = []
    for question in questions:
        go, ours = (each.ask(question.method, question.path, question.body) for each in pair)
        found += compare(
            f"rest {question}", parts(go, ordered=question.is_ordered), parts(ours, ordered=question.is_ordered)
        )
    return found


def parts(answer: Answer, *, ordered: bool) -> dict[str, Any]:
    body = answer.body
    if isinstance(body, dict) and isinstance(body.get("items"), list):
        if not ordered:
            body = {**body, "items": sorted(body["items"], key=lambda each: each.get("name", each["id"]))}
        return {"code": answer.code, "type": answer.content_type, **{f"list.{key}": body[key] for key in body}}
    return {"code": answer.code, "type": answer.content_type, "body": body}


def test_tables(seeded: tuple[Twin, Twin]) -> None:
    refute(asked(seeded, list(rest_cases.fixed())))


def test_every_bundle(seeded: tuple[Twin, Twin]) -> None:
    names = ["bare", *(f"bundle{number:02}" for number in range(1, 7))]
    refute(asked(seeded, [about(f"{BUNDLES}/{name}") for name in names]))


def test_searches_by_chance(seeded: tuple[Twin, Twin]) -> None:
    questions = [about(BUNDLES, search=each) for each in rest_cases.searches_by_chance(SEED, 400)]
    refute(asked(seeded, questions))


def test_registering_changing_and_removing_consumers(seeded: tuple[Twin, Twin]) -> None:
    found = asked(seeded, list(rest_cases.posts()))
    bodies = (
        b'{"labels":{"c":"d"}}',
        b"{}",
        b'{"labels":null}',
        b'{"labels":{}}',
        b"{nojson",
        b'{"name":"x"}',
        b"null",
    )
    for body in bodies:
        found += on_consumer(seeded, "PATCH", "new2", body=body)
    found += on_consumer(seeded, "DELETE", "cluster1")
    found += on_consumer(seeded, "DELETE", "new2")
    found += on_consumer(seeded, "DELETE", "new2")
    found += asked(seeded, [about(CONSUMERS, orderBy="name", search="name like 'new%'")])
    refute(found)


def on_consumer(pair: tuple[Twin, Twin], method: str, name: str, *, body: bytes | None = None) -> list[Mismatch]:
    """Ask about the consumer of that name, whose id differs."""
    answers = []
    for each in pair:
        search = urllib.parse.urlencode({"search": f"name = '{name}'"})
        items = each.ask("GET", f"{CONSUMERS}?{search}").body["items"]
        path = f"{CONSUMERS}/{items[0]['id']}" if items else f"{BASE}/consumers/gone"
        answers.append(parts(each.ask(method, path, body), ordered=True))
    return compare(f"rest {method} consumer {name} {body!r}", *answers)
