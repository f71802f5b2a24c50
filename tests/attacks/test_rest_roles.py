"""A REST token does what its role allows, for the sources that it names."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from maestropy.server.auth.roles import Role, RoleMapping, claim_values
from maestropy.store.dsn import Dsn
from maestropy.transport.peer_identity import PeerIdentity
from maestropy.wire.events import grpc_binding
from tests import waiting
from tests.stack.secure_server import BUNDLES, CONSUMER, Running, add_consumers, running, send, spec

CONSUMERS = "/api/maestro/v1/consumers"
KEY = ec.generate_private_key(ec.SECP256R1())
ALICE = PeerIdentity(user="alice")


def bearer(**claims: Any) -> dict[str, str]:
    token = jwt.encode({"sub": "alice", "exp": time.time() + 3600, **claims}, KEY, algorithm="ES256")
    return {"Authorization": f"Bearer {token}"}


@asynccontextmanager
async def protected(database: Dsn, folder: Path, **flags: str) -> AsyncIterator[tuple[Running, httpx.AsyncClient]]:
    """Serve with two consumers; cluster1 has a resource bundle of `mine` and one of `theirs`, cluster2 only theirs."""
    await add_consumers(database, CONSUMER, "cluster2")
    keys = folder / "jwks.json"
    keys.write_text(json.dumps({"keys": [ECAlgorithm.to_jwk(KEY.public_key(), as_dict=True)]}))
    given = {"--rest-authn-type": "jwt", "--jwks-file": str(keys), "--jwt-algorithms": "ES256"}
    given |= {f"--{name.replace('_', '-')}": value for name, value in flags.items()}
    async with running(database, given) as server, server.http("rest") as rest:
        async with server.sources() as channel:
            for name, source, cluster in (
                ("of-me", "mine", CONSUMER),
                ("of-them", "theirs", CONSUMER),
                ("elsewhere", "theirs", "cluster2"),
            ):
                event = spec(name, source=source, extensions={"clustername": cluster})
                await send(channel, grpc_binding.encode_publish(event))
        yield server, rest


READS = (("GET", BUNDLES), ("GET", f"{BUNDLES}/of-me"), ("GET", CONSUMERS), ("GET", "/api/maestro/v1/openapi"))
WRITES = (("PATCH", f"{CONSUMERS}/cluster2"), ("POST", CONSUMERS), ("DELETE", f"{BUNDLES}/of-them"))
DELETIONS = (("DELETE", f"{CONSUMERS}/empty"),)


@pytest.mark.parametrize(
    ("claims", "allowed"),
    [
        pytest.param({}, (), id="no-role"),
        pytest.param({"roles": ["admin", "maestro-admin2"]}, (), id="other-roles"),
        pytest.param({"roles": {"maestro-admin": True}}, (), id="wrong-shape"),
        pytest.param({"roles": "maestro-read profile"}, READS, id="read-as-text"),
        pytest.param({"roles": ["maestro-read"]}, READS, id="read"),
        pytest.param({"roles": ["maestro-read", "maestro-write"]}, READS + WRITES, id="write"),
        pytest.param({"roles": ["maestro-admin"]}, READS + WRITES + DELETIONS, id="admin"),
    ],
)
async def test_role_bounds_what_a_token_may_do(
    database: Dsn, tmp_path: Path, claims: dict[str, Any], allowed: tuple[tuple[str, str], ...]
) -> None:
    """write or delete with a valid token of a lower role -> 403, nothing changes"""
    async with protected(database, tmp_path) as (server, rest):
        await add_consumers(database, "empty")
        before = await state(server)
        for method, path in READS + WRITES + DELETIONS:
            response = await rest.request(method, path, json={"labels": {"a": "b"}}, headers=bearer(**claims))
            if (method, path) in allowed:
                assert response.is_success, response.text
            else:
                assert (response.status_code, response.json()["id"]) == (403, "11"), path
                assert "it needs the role" in response.json()["reason"]
        if not set(allowed) & set(WRITES):
            assert await state(server) == before


async def state(server: Running) -> list[Any]:
    rows = await server.sql(
        "SELECT id, labels::text FROM consumers UNION ALL SELECT id, deleted_at::text FROM resources"
    )
    return sorted(map(tuple, rows), key=str)


async def test_token_without_a_role_gets_the_configured_default(database: Dsn, tmp_path: Path) -> None:
    flags = {"jwt_default_role": "read", "jwt_role_claim": "realm_access.roles", "jwt_role_write": "editors,owners"}
    async with protected(database, tmp_path, **flags) as (_, rest):
        patch = f"{CONSUMERS}/cluster2"
        owner = {"realm_access": {"roles": ["owners"]}}
        assert (await rest.get(BUNDLES, headers=bearer())).status_code == 200
        assert (await rest.patch(patch, json={}, headers=bearer())).status_code == 403
        assert (await rest.patch(patch, json={}, headers=bearer(**owner))).status_code == 200


@pytest.mark.parametrize(
    ("claims", "bundles", "consumers"),
    [
        pytest.param({"src": ["mine"]}, {"of-me"}, {CONSUMER}, id="one-source"),
        pytest.param({"src": "mine theirs"}, {"of-me", "of-them", "elsewhere"}, {CONSUMER, "cluster2"}, id="two"),
        pytest.param({"src": ["other' OR TRUE --"]}, set(), set(), id="unknown-source"),
        pytest.param({}, set(), set(), id="no-claim"),
        pytest.param({"src": ["*"]}, {"of-me", "of-them", "elsewhere"}, {CONSUMER, "cluster2"}, id="all"),
    ],
)
async def test_source_bounds_what_a_token_sees(
    database: Dsn, tmp_path: Path, claims: dict[str, Any], bundles: set[str], consumers: set[str]
) -> None:
    """read, search or delete the resource bundles of another source with a token limited to one's own -> 404, 403, or \
a list without them"""
    async with protected(database, tmp_path, jwt_source_claim="src") as (server, rest):
        headers = bearer(roles=["maestro-write"], **claims)
        for search in ("", "source = 'theirs' or source = 'mine'", "version = 1 or name = 'x'"):
            listed = (await rest.get(BUNDLES, params={"search": search}, headers=headers)).json()
            assert ({item["id"] for item in listed["items"]}, listed["total"]) == (bundles, len(bundles))
        empty_page = (await rest.get(BUNDLES, params={"size": 0}, headers=headers)).json()
        assert empty_page["total"] == len(bundles)
        listed = (await rest.get(CONSUMERS, params={"search": "name != 'x'"}, headers=headers)).json()
        assert {item["name"] for item in listed["items"]} == consumers
        for name in ("of-me", "of-them", "elsewhere"):
            found = (await rest.get(f"{BUNDLES}/{name}", headers=headers)).status_code
            deleted = (await rest.delete(f"{BUNDLES}/{name}", headers=headers)).status_code
            assert (found, deleted) == ((200, 204) if name in bundles else (404, 403)), name
        for name in (CONSUMER, "cluster2"):
            found = (await rest.get(f"{CONSUMERS}/{name}", headers=headers)).status_code
            assert found == (200 if name in consumers else 404)
        rows = await server.sql("SELECT id FROM resources WHERE deleted_at IS NOT NULL")
        assert {row["id"] for row in rows} == bundles


HOLDS = "/api/maestro/v1/data-safety-holds"


async def test_source_bounds_what_a_token_sees_of_holds(database: Dsn, tmp_path: Path) -> None:
    """read the data-safety holds of other sources' works with a token limited to one's own -> 404, or only one's own \
works, without the message"""
    async with protected(database, tmp_path, jwt_source_claim="src") as (server, rest):
        for consumer, works in ((CONSUMER, "of-me,of-them,gone"), ("cluster2", "elsewhere")):
            await server.sql(
                "INSERT INTO maestropy_holds"
                " (consumer_name, id, reason, message, database_id, work_count, works, since) "
                f"VALUES ('{consumer}', 'h-{consumer}', 'OtherDatabase', 'secret', 'd0', 3, '{{{works}}}', now())"
            )
        mine = bearer(roles=["maestro-read"], src=["mine"])
        (item,) = (await rest.get(HOLDS, headers=mine)).json()["items"]
        assert (item["consumer_name"], item["work_count"], item["message"]) == (CONSUMER, 1, "")
        shown = (await rest.get(f"{CONSUMERS}/{CONSUMER}/data-safety-hold", headers=mine)).json()
        assert (shown["works"], shown["absent_works"], shown["message"]) == (["of-me"], [], "")
        hidden = await rest.get(f"{CONSUMERS}/cluster2/data-safety-hold", headers=mine)
        absent = await rest.get(f"{CONSUMERS}/cluster3/data-safety-hold", headers=mine)
        assert (hidden.status_code, absent.status_code) == (404, 404)
        assert hidden.json()["reason"].replace("cluster2", "cluster3") == absent.json()["reason"]
        for other in ({"src": ["unknown"]}, {}):
            headers = bearer(roles=["maestro-read"], **other)
            assert (await rest.get(HOLDS, headers=headers)).json()["items"] == []
            response = await rest.get(f"{CONSUMERS}/{CONSUMER}/data-safety-hold", headers=headers)
            assert response.status_code == 404
        admin = bearer(roles=["maestro-admin"])
        assert len((await rest.get(HOLDS, headers=admin)).json()["items"]) == 2
        shown = (await rest.get(f"{CONSUMERS}/{CONSUMER}/data-safety-hold", headers=admin)).json()
        assert (shown["works"], shown["absent_works"]) == (["of-me", "of-them", "gone"], ["gone"])


async def test_consumers_are_shared_between_sources(database: Dsn, tmp_path: Path) -> None:
    """change consumers with a token limited to one source -> 403: all sources share them"""
    async with protected(database, tmp_path, jwt_source_claim="src") as (_, rest):
        limited = bearer(roles=["maestro-write"], src=["mine"])
        for method, path in (("POST", CONSUMERS), ("PATCH", f"{CONSUMERS}/{CONSUMER}")):
            assert (await rest.request(method, path, json={}, headers=limited)).status_code == 403
        admin = bearer(roles=["maestro-admin"])
        assert (await rest.patch(f"{CONSUMERS}/{CONSUMER}", json={}, headers=admin)).status_code == 200
        assert (await rest.get(BUNDLES, headers=admin)).json()["total"] == 3


@pytest.mark.parametrize(
    ("claims", "values"),
    [
        pytest.param({"a": ["x", 7, "y"]}, ("x", "y"), id="list"),
        pytest.param({"a": "x  y"}, ("x", "y"), id="text"),
        pytest.param({"a": 7}, (), id="number"),
        pytest.param({}, (), id="absent"),
        pytest.param({"a": None}, (), id="null"),
    ],
)
def test_claims_by_table(claims: dict[str, Any], values: tuple[str, ...]) -> None:
    assert claim_values(claims, "a") == values
    assert claim_values({"b.c": claims.get("a")}, "b.c") == values
    assert claim_values({"b": {"c": claims.get("a")}}, "b.c") == values


def test_highest_role_counts() -> None:
    mapping = RoleMapping(read=("r",), write=("w",), admin=("a",), source_claim="s")
    assert mapping.client(ALICE, {"roles": ["r", "a", "w"]}).role is Role.ADMIN
    assert mapping.client(ALICE, {"roles": ["r", "a"]}).sources is None
    assert mapping.client(ALICE, {"roles": ["r"]}).sources == frozenset()


HISTORY = "/api/maestro/v1/history"


@pytest.mark.parametrize(
    ("role", "status"), [("", 403), ("r", 403), ("w", 403), ("a", 200)], ids=["no-role", "read", "write", "admin"]
)
async def test_export_of_the_history_needs_the_role_admin(
    database: Dsn, tmp_path: Path, role: str, status: int
) -> None:
    """read the history of everything with a token of a lower role -> 403, and the attempt is in the history"""
    roles = {"jwt_role_read": "r", "jwt_role_write": "w", "jwt_role_admin": "a"}
    async with protected(database, tmp_path, **roles) as (_, rest):
        answer = await rest.get(HISTORY, headers=bearer(roles=[role]))
        assert answer.status_code == status, answer.text

        async def refusals() -> list[dict[str, Any]]:
            listed = await rest.get(HISTORY, params={"kind": "request"}, headers=bearer(roles=["a"]))
            return [item for item in listed.json()["items"] if item["user"] == "alice"]

        if status == 403:
            refusal = (await waiting.until(refusals))[0]
            assert (refusal["result"], refusal["address"]) == ("denied", "127.0.0.1")
            assert refusal["detail"]["request"] == "GET /api/maestro/v1/history"
        else:
            kinds = {item["kind"] for item in answer.json()["items"]}
            assert "work.created" in kinds


async def test_history_is_limited_to_the_sources_of_a_token(database: Dsn, tmp_path: Path) -> None:
    """read the history of works of other sources with a token limited to one's own -> 404, or only one's own entries"""
    roles = {"jwt_role_read": "r", "jwt_source_claim": "sources"}
    async with protected(database, tmp_path, **roles) as (_, rest):
        mine = bearer(roles=["r"], sources=["mine"])

        async def read(path: str) -> tuple[int, list[str]]:
            answer = await rest.get(path, headers=mine)
            return answer.status_code, [item["resource_id"] for item in answer.json().get("items", [])]

        assert await read(f"{BUNDLES}/of-me/history") == (200, ["of-me"])
        assert await read(f"{BUNDLES}/of-them/history") == (404, [])
        assert await read(f"{CONSUMERS}/{CONSUMER}/history") == (200, ["of-me"])
        assert await read(f"{CONSUMERS}/cluster2/history") == (404, [])


ACTIONS = {
    "write": (f"{BUNDLES}/of-me/resend", f"{CONSUMERS}/{CONSUMER}/resync"),
    "admin": (
        *(f"{CONSUMERS}/{CONSUMER}/pause", f"{CONSUMERS}/{CONSUMER}/resume"),
        *(f"{CONSUMERS}/{CONSUMER}/retirement", "/api/maestro/v1/sweep"),
    ),
}


@pytest.mark.parametrize("role", ["none", "read", "write", "admin"])
async def test_operator_actions_need_their_role(database: Dsn, tmp_path: Path, role: str) -> None:
    """resend, resync, pause, resume, retire or sweep with a token of a lower role -> 403, nothing changes"""
    ranks = ["none", "read", "write", "admin"]
    async with protected(database, tmp_path) as (server, rest):
        for needed, paths in ACTIONS.items():
            for path in paths:
                for query in ("", "?dryRun=All"):
                    body = {"works": "release"} if path.endswith("retirement") else {}
                    response = await rest.post(path + query, json=body, headers=bearer(roles=[f"maestro-{role}"]))
                    is_allowed = ranks.index(role) >= ranks.index(needed)
                    assert (response.status_code != 403) is is_allowed, (path, response.text)
        events = await server.sql("SELECT count(*) AS n FROM maestropy_pauses")
        assert events[0]["n"] == 0  # an admin has resumed what was paused


async def test_token_limited_to_sources_resends_only_their_works(database: Dsn, tmp_path: Path) -> None:
    """resend a work of another source, or resync a shared consumer -> 404, 403"""
    async with protected(database, tmp_path, jwt_source_claim="sources") as (_, rest):
        mine = bearer(roles=["maestro-write"], sources=["mine"])
        assert (await rest.post(f"{BUNDLES}/of-me/resend", json={}, headers=mine)).status_code == 200
        assert (await rest.post(f"{BUNDLES}/of-them/resend", json={}, headers=mine)).status_code == 404
        assert (await rest.post(f"{CONSUMERS}/{CONSUMER}/resync", json={}, headers=mine)).status_code == 403
