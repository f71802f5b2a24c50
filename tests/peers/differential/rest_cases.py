"""What both REST APIs are asked: every route, every parameter, every mistake; and searches made by chance.

Bundles and consumers that the questions speak of are made by `SEED`; the answers are nobody's business here.
"""

import random
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass

from tests.peers.differential.twins import BASE, CONSUMER, SOURCE

BUNDLES = f"{BASE}/resource-bundles"
CONSUMERS = f"{BASE}/consumers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One call."""

    method: str = "GET"
    path: str
    body: bytes | None = None

    def __str__(self) -> str:
        told = urllib.parse.unquote_plus(self.path.removeprefix(BASE))
        return f"{self.method} {told}" + (f" {self.body!r}" if self.body is not None else "")

    @property
    def is_ordered(self) -> bool:
        return "orderBy" in self.path


def about(path: str, **parameters: str) -> Question:
    return Question(path=f"{path}?{urllib.parse.urlencode(parameters)}" if parameters else path)


SEARCHES = (
    # As the Go client writes them.
    f"source='{SOURCE}'",
    f"source='{SOURCE}' and consumer_name='{CONSUMER}'",
    f"source='{SOURCE}' and (consumer_name='{CONSUMER}' or consumer_name='b')",
    """source='s' and payload->'metadata'->'labels'@>'{"app":"a","tier":"web"}'""",
    """payload->'metadata'->'labels'@>'{"app":"a"}'""",
    "payload->'metadata'->'labels'->>'app'<>'a'",
    "payload->'metadata'->'labels'->>'app'in('a','b')",
    "payload->'metadata'->'labels'->>'app'not in('a','b')",
    "payload->'metadata'->'labels'->>'app'<>null",
    "payload -> 'metadata' -> 'labels' ->> 'app' = 'a'",
    "payload->'metadata'->'labels'->>'app'like'%'",
    "payload->'metadata'->'labels'->>'app'ilike'A'",
    # The tree search language.
    "id = 'bundle01'",
    "id != 'bundle01'",
    "id <> 'bundle01'",
    "id in ('bundle01', 'bundle02')",
    "id not in ('bundle01')",
    "id in ()",
    "id like 'bundle0%'",
    "id not like 'bundle0%'",
    "id ilike 'BUNDLE0%'",
    "version > 1",
    "version >= 1 and version <= 2",
    "version between 1 and 2",
    "version not between 1 and 2",
    "version = 1.0",
    "version = 1e0",
    "version + 1 = 2",
    "version * 2 > 2",
    "not version = 1",
    "deleted_at is null",
    "deleted_at is not null",
    "status is null",
    "type is null",
    "type = ''",
    "name = 'it''s'",
    "resources.id = 'bundle01'",
    "created_at > '2020-01-01'",
    "created_at < '2020-01-01T00:00:00Z'",
    "ID = 'bundle01'",
    "id = 'bundle01' AND version = 1 OR version = 2",
    "(id = 'bundle01' or id = 'bundle02') and version = 1",
    # Mistakes.
    "id ~= 'b'",
    "id ~! 'b'",
    "id =",
    "= 'x'",
    "id 'x'",
    "and",
    "(",
    "id = 'x",
    'id = "x"',
    "nosuch = 'x'",
    "other.id = 'x'",
    "a.b.c = 'x'",
    "properties.x = 'y'",
    "version = 'abc'",
    "id = 5",
    "created_at = 'yesterday'",
    "1 = 1",
    "id = id",
    "payload->'metadata'->>",
    "payload->'metadata'@>broken",
    "payload->'metadata'@>'broken'",
    "payload->>'id'='x' and",
    "payload->>'id'",
    "nosuch->>'id'='x'",
    "version->>'id'='x'",
    "payload->>'id'='x' or payload->>'id'='y' or (payload->>'id'='z')",
    "not payload->>'id'='x'",
    " and ".join(["payload->>'id'='x'"] * 12),
    "payload->>'id'='x\\'y'",
    "payload->>'id'='ü'",
    "id = 'ü'",
    "id='';drop table resources",
    "",
    "   ",
)

ORDERS = (
    "id",
    "id asc",
    "id desc",
    "version desc,id",
    "created_at desc",
    "ID desc",
    "id DESC",
    "id  desc",
    " id",
    "id,",
    ",",
    "nosuch",
    "id up",
    "a b c",
    "resources.id",
    "id;drop table x",
)

PAGES = tuple(
    {"page": page, "size": size}
    for page in ("", "1", "2", "0", "-1", "99", "x", " 1 ", "1.5")
    for size in ("", "2", "0", "-1", "65501", "x", "99999999999999999999")
)


def fixed() -> Iterator[Question]:
    """Yield the questions of the tables."""
    for path in ("/api/maestro", "/api/maestro/", BASE, f"{BASE}/", "/", "/nowhere", f"{BASE}/nowhere", "/api"):
        yield about(path)
    yield from (about(f"{BASE}/errors/{each}") for each in ("", "7", "9", "999", "x", "-1"))
    yield about(f"{BASE}/errors")
    yield from (about(f"{BASE}/errors", page=page, size="5") for page in ("1", "3", "9"))
    for path in (BUNDLES, CONSUMERS):
        yield from (about(path, search=each) for each in SEARCHES)
        yield from (about(path, orderBy="name", **each) for each in PAGES)
        yield about(f"{path}/nobody")
        yield about(f"{path}/bundle01")
        yield Question(method="DELETE", path=f"{path}/nobody")
        for method in ("PUT", "POST", "PATCH", "OPTIONS", "HEAD"):
            yield Question(method=method, path=f"{path}/nobody", body=b"{}")
    # Ids of consumers are made by chance, so only bundles can be compared in the order of their ids.
    yield from (about(BUNDLES, orderBy=each) for each in ORDERS)
    yield from (about(CONSUMERS, orderBy=each.replace("id", "name").replace("ID", "NAME")) for each in ORDERS)
    yield Question(method="PUT", path=BUNDLES, body=b"{}")
    yield Question(method="DELETE", path=CONSUMERS)
    yield from (about(BUNDLES, fields=each) for each in ("id", "id,version", "nosuch"))
    yield about(BUNDLES, search="id = 'bundle01'", orderBy="id", page="1", size="1")


def posts() -> Iterator[Question]:
    """Yield attempts to register consumers."""
    bodies = (
        b'{"name":"new1"}',
        b'{"name":"new1"}',
        b'{"name":"new2","labels":{"a":"b"}}',
        b'{"name":"new3","labels":{}}',
        b'{"name":"new4","labels":null}',
        b'{"name":"new5","unknown":1}',
        b'{"name":"new6","id":""}',
        b'{"id":"x","name":"y"}',
        b'{"name":""}',
        b"{}",
        b"null",
        b"[]",
        b"5",
        b'"text"',
        b"",
        b"{nojson",
        b'{"name":5}',
        b'{"name":"new7","labels":{"a":5}}',
        b'{"name":"new8","labels":["a"]}',
        b'{"name":"Bad_Name"}',
        b'{"name":"-bad"}',
        b'{"name":"' + b"x" * 63 + b'"}',
        b'{"name":"' + b"x" * 64 + b'"}',
        b'{"name":"new9"} trailing',
        b'{"name":"new10","name":"new11"}',
        b'{"name":"caf\xc3\xa9"}',
        b'{"name":"new12","labels":{"\xc3\xa9":"\xf0\x9f\x98\x80"}}',
        b'{"Name":"unnoticed"}',
        b'\xff\xfe{"name":"new14"}',
    )
    for body in bodies:
        yield Question(method="POST", path=CONSUMERS, body=body)


def searches_by_chance(seed: int, count: int) -> list[str]:
    """Return searches in both languages, most of them right."""
    chance = random.Random(seed)
    return [_spoiled(chance, _search(chance)) for _ in range(count)]


def _search(chance: random.Random) -> str:
    term = _label_term if chance.random() < 0.4 else _term
    terms = [term(chance) for _ in range(chance.randint(1, 4))]
    told = terms[0]
    for each in terms[1:]:
        joined = f"{told} {chance.choice(['and', 'or', 'AND', 'Or'])} {each}"
        told = f"({joined})" if chance.random() < 0.3 else joined
    return told


def _term(chance: random.Random) -> str:
    column = chance.choice(["id", "name", "source", "consumer_name", "type"])
    value = chance.choice(["bundle01", "bundle02", "b%", "%", "", SOURCE, CONSUMER, "it''s", "nobody"])
    return chance.choice(
        [
            f"{column} {chance.choice(['=', '!=', '<>', '<', '>', '<=', '>='])} '{value}'",
            f"{column} {chance.choice(['like', 'not like', 'ilike', 'not ilike'])} '{value}'",
            f"{column} {chance.choice(['in', 'not in'])} ('{value}', 'bundle03')",
            f"version {chance.choice(['=', '<', '>', '!='])} {chance.choice(['1', '2', '-1', '1.5', '3e0'])}",
            f"version between {chance.randint(0, 2)} and {chance.randint(1, 4)}",
            f"{chance.choice(['deleted_at', 'type', 'created_at'])} is {chance.choice(['', 'not '])}null",
            f"not {column} = '{value}'",
            f"version {chance.choice('+-*')} 1 > 1",
        ]
    )


def _label_term(chance: random.Random) -> str:
    label = chance.choice(["app", "tier", "nosuch", "a/b"])
    value = chance.choice(["a", "b", "web", "A", "%", ""])
    where = f"payload->'metadata'->'labels'->>'{label}'"
    return chance.choice(
        [
            f"{where}{chance.choice(['=', '<>', ' = ', ' <> '])}'{value}'",
            f"{where} {chance.choice(['like', 'ilike'])} '{value}'",
            f"{where}{chance.choice([' in', ' not in'])}('{value}','c')",
            f"""payload->'metadata'->'labels'@>'{{"{label}":"{value}"}}'""",
            f"consumer_name='{chance.choice([CONSUMER, 'b'])}'",
            f"source{chance.choice(['=', '<>'])}'{SOURCE}'",
        ]
    )


def _spoiled(chance: random.Random, told: str) -> str:
    if chance.random() < 0.85 or not told:
        return told
    at = chance.randrange(len(told))
    return chance.choice([told[:at], told[:at] + chance.choice("'()= x") + told[at:], told[:at] + told[at + 1 :]])
