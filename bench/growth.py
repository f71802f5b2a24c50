"""Measure what each operation costs with ten thousand, a hundred thousand and a million resources.

    python -m bench.growth [--sizes 10000,100000,1000000] [--publish]

One server on one PostgreSQL with fsync, which grows: resources of 2.5 KB with renditions are written by SQL, 1,000
consumers, two sources, labels with a value for five resources, for every twentieth and for every second. Reads are REST
requests, the middle of several; creates are those of the SDK, 32 at a time. CPU is what the server and PostgreSQL used
for one operation. The exponent says how the time grows: 0 is flat, 1 is as fast as the number of resources. `--publish`
writes bench/growth.json, and the table and the picture of docs/performance.md.
"""

import argparse
import asyncio
import json
import math
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from bench import usage
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.work import Work
from tests.peers import peer_postgres, peer_servers

HERE = Path(__file__).resolve().parent
PUBLISHED = HERE / "growth.json"
PAGE = HERE.parent / "docs" / "performance.md"
BEGIN, END = "<!-- growth: written by `make bench-growth BENCH=--publish` -->", "<!-- end of growth -->"

PICTURE = PAGE.parent / "images" / "growth.png"
PLOTTED = {
    "search that no index serves": "no index serves it",
    "search by label of every second": "label of every second",
    "list, last page by number": "last page by number",
    "list, deep page by `continue`": "deep page by continue",
    "search by label of 5, `->>'k' = 'v'`": "label of 5",
    "search by work name": "work name",
    "create, 32 at a time": "create",
}
"""Operations in the picture, and what they are called there."""

BUNDLES = "/api/maestro/v1/resource-bundles"
LABELS = "payload->'metadata'->'labels'"
STEP = 20_000
ROUNDS, CREATES, AT_ONCE = 9, 640, 32
CONSUMER_ROWS = """
INSERT INTO consumers (id, name, created_at, updated_at)
SELECT 'c' || n, 'cluster' || n, now(), now() FROM generate_series(0, 999) n ON CONFLICT DO NOTHING"""
FILL = """
WITH made AS (
  SELECT n, md5('resource' || n)::uuid::text AS id,
    jsonb_build_object('name', 'work-' || md5(n::text), 'namespace', 'cluster' || n % 1000,
      'labels', jsonb_build_object('api.openshift.com/id', md5((n / 5)::text), 'app', 'app' || n % 20,
        'env', CASE n % 2 WHEN 0 THEN 'prod' ELSE 'dev' END)) AS metadata,
    jsonb_build_object('manifests', jsonb_build_array(jsonb_build_object('apiVersion', 'v1', 'kind', 'ConfigMap',
      'metadata', jsonb_build_object('name', 'cm-' || n, 'namespace', 'default'),
      'data', jsonb_build_object('text', repeat(md5(n::text), 70))))) AS data
  FROM generate_series($1::int, $2::int) n
), stored AS (
  INSERT INTO resources (id, name, source, consumer_name, version, type, payload, created_at, updated_at)
  SELECT id, id, CASE WHEN n % 100 = 0 THEN 'rare' ELSE 'growth' END, 'cluster' || n % 1000, 1, '',
    jsonb_build_object('specversion', '1.0', 'id', id, 'metadata', metadata, 'data', data),
    timestamptz '2026-01-01' + n * interval '1 second', now() FROM made
)
INSERT INTO renditions (id, version, envelope, metadata, data)
SELECT id, 1, convert_to('{"specversion":"1.0"}', 'UTF8'), convert_to(metadata::text, 'UTF8'),
  convert_to(data::text, 'UTF8') FROM made"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A REST request for a database of `size` resources."""

    name: str
    params: Callable[[int], Mapping[str, str | int]]


def _md5(text: str) -> str:
    import hashlib  # noqa: PLC0415

    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _search(text: Callable[[int], str], **others: str | int) -> Callable[[int], Mapping[str, str | int]]:
    return lambda size: {"search": text(size // 2), **others}


READS = (
    Read(name="list, first page of 100", params=lambda _size: {}),
    Read(name="list, last page by number", params=lambda size: {"page": size // 100}),
    Read(name="total only", params=lambda _size: {"size": 0}),
    Read(name="search by ID", params=_search(lambda n: f"id = '{_id(n)}'")),
    Read(name="search by work name", params=_search(lambda n: f"payload->'metadata'->>'name' = 'work-{_md5(str(n))}'")),
    Read(
        name="search by work name, `like 'x%'`",
        params=_search(lambda n: f"payload->'metadata'->>'name' like 'work-{_md5(str(n))[:12]}%'"),
    ),
    Read(
        name="search by label of 5, `->>'k' = 'v'`",
        params=_search(lambda n: f"{LABELS}->>'api.openshift.com/id' = '{_md5(str(n // 5))}'"),
    ),
    Read(
        name="search by label of 5, `@>`",
        params=_search(lambda n: f'{LABELS}@>\'{{"api.openshift.com/id":"{_md5(str(n // 5))}"}}\''),
    ),
    Read(
        name="search by label of 10, `in`",
        params=_search(
            lambda n: f"{LABELS}->>'api.openshift.com/id' in ('{_md5(str(n // 5))}', '{_md5(str(n // 5 + 1))}')"
        ),
    ),
    Read(name="search by label of every second", params=_search(lambda _n: f"{LABELS}->>'env' = 'prod'")),
    Read(name="list of a consumer", params=_search(lambda _n: "consumer_name = 'cluster7'")),
    Read(name="list of a consumer, by ID (SDK)", params=_search(lambda _n: "consumer_name = 'cluster7'", orderBy="id")),
    Read(name="list of a source of every hundredth", params=_search(lambda _n: "source = 'rare'")),
    Read(name="search that no index serves", params=_search(lambda _n: "payload->'data'->>'x' = 'y'")),
)


def _id(number: int) -> str:
    text = _md5(f"resource{number}")
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


@dataclass(slots=True)
class Meter:
    """Measures operations of one server."""

    server: peer_servers.RunningServer
    postgres_pid: int

    def cpu(self) -> float:
        return usage.cpu_seconds(self.server.pid) + usage.family_cpu_seconds(self.postgres_pid)

    def reads(self, size: int) -> dict[str, dict[str, float]]:
        found = {}
        with httpx.Client(base_url=self.server.rest_url, timeout=60) as api:
            found["get one by ID"] = self._timed(lambda: api.get(f"{BUNDLES}/{_id(size // 2)}"))
            for read in READS:
                params = dict(read.params(size))
                found[read.name] = self._timed(lambda params=params: api.get(BUNDLES, params=params))  # type: ignore[misc]
            # From where nine tenths of the list are behind.
            deep = api.get(BUNDLES, params={"page": size * 9 // 1000}).headers["X-Maestro-Continue"]
            found["list, deep page by `continue`"] = self._timed(lambda: api.get(BUNDLES, params={"continue": deep}))
        return found

    def _timed(self, ask: Callable[[], httpx.Response]) -> dict[str, float]:
        first = ask()
        if first.status_code == 400:
            # The bound on searches that no index serves.
            return {"ms": first.elapsed.total_seconds() * 1000}
        first.raise_for_status()
        rounds = 3 if first.elapsed.total_seconds() > 1 else ROUNDS
        times = []
        before = self.cpu()
        for _ in range(rounds):
            started = time.perf_counter()
            ask().raise_for_status()
            times.append((time.perf_counter() - started) * 1000)
        return {"ms": statistics.median(times), "cpu_ms": (self.cpu() - before) * 1000 / rounds}

    def creates(self, size: int) -> dict[str, dict[str, float]]:
        async def create() -> float:
            async with AsyncMaestro(
                api_url=self.server.rest_url, grpc_url=self.server.grpc_addr, source=f"bench{size}"
            ) as client:
                gate = asyncio.Semaphore(AT_ONCE)

                async def one(number: int) -> None:
                    manifest: dict[str, Any] = {
                        "apiVersion": "v1",
                        "kind": "ConfigMap",
                        "metadata": {"name": "x", "namespace": "d"},
                    }
                    work = Work(f"w{number}").add(manifest | {"data": {"text": "x" * 2300}})
                    async with gate:
                        await client.works(f"cluster{number % 1000}").create(work.with_labels({"app": "bench"}))

                await one(CREATES)
                started = time.perf_counter()
                await asyncio.gather(*(one(number) for number in range(CREATES)))
                return time.perf_counter() - started

        before = self.cpu()
        seconds = asyncio.run(create())
        return {
            f"create, {AT_ONCE} at a time": {
                "ms": seconds * 1000 / CREATES,
                "cpu_ms": (self.cpu() - before) * 1000 / CREATES,
            }
        }


def measure(sizes: Sequence[int]) -> dict[str, Any]:
    """Fill the database step by step, and measure at each size."""
    load = os.getloadavg()[0]
    results: dict[str, dict[str, dict[str, float]]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="maestropy-growth-", ignore_cleanup_errors=True) as folder,
        peer_postgres.cluster(Path(folder), durable=True) as cluster,
    ):
        pid = int((Path(folder) / "data" / "postmaster.pid").read_text().split()[0])
        database = cluster.create("growth")
        with peer_servers.python_server(database=database, folder=Path(folder), flags=["-v=1"]) as server:
            filled = 0
            for size in sizes:
                asyncio.run(fill(database.dsn, filled + 1, size))
                filled = size
                meter = Meter(server, pid)
                for name, figures in {**meter.reads(size), **meter.creates(size)}.items():
                    results.setdefault(name, {})[str(size)] = figures
                print(f"{size:,} resources measured", file=sys.stderr, flush=True)
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"when": when, "cores": os.cpu_count(), "load": load, "sizes": list(sizes), "operations": results}


async def fill(dsn: str, first: int, last: int) -> None:
    """Write resources `first` to `last`, and leave the tables as autovacuum does."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(CONSUMER_ROWS)
        await connection.execute("SET synchronous_commit = off")
        for begin in range(first, last + 1, STEP):
            await connection.execute(FILL, begin, min(begin + STEP - 1, last))
        await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()


def exponent(figures: Mapping[str, Mapping[str, float]]) -> float:
    """Return the slope of the time over the number of resources, both as logarithms."""
    points = [(math.log(int(size)), math.log(found["ms"])) for size, found in figures.items()]
    if len(points) < 2:
        return math.nan
    xs, ys = zip(*points, strict=True)
    return statistics.linear_regression(xs, ys).slope


def table(document: Mapping[str, Any]) -> str:
    """Return the table of the page."""
    sizes = document["sizes"]
    busy = f" while other work went on (load {document['load']:.0f})" if document["load"] > 1 else ""
    heads = [f"{size:,}" for size in sizes]
    lines = ["![time of operations by the number of resources](images/growth.png)", ""]
    lines += [f"Measured {document['when'][:10]} on {document['cores']} cores{busy}; time and CPU in ms:", ""]
    lines.append(f"| operation | {' | '.join(heads)} | exponent | {' | '.join(f'CPU, {head}' for head in heads)} |")
    lines.append(f"|---|{'--:|' * (2 * len(sizes) + 1)}")
    for name, figures in document["operations"].items():
        times = [shown(figures[str(size)]["ms"]) for size in sizes]
        cpus = [shown(figures[str(size)].get("cpu_ms", math.nan)) for size in sizes]
        lines.append(f"| {name} | {' | '.join(times)} | {exponent(figures):.2f} | {' | '.join(cpus)} |")
    return "\n".join(lines)


def shown(value: float) -> str:
    """Return a figure with as many digits as it is worth."""
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def write_page(document: Mapping[str, Any], page: Path = PAGE) -> None:
    """Put the table between its markers; nothing else of the page is touched."""
    text = page.read_text()
    between = re.compile(re.escape(BEGIN) + r".*?" + re.escape(END), re.DOTALL)
    if not between.search(text):
        raise ValueError(f"{page} lacks the lines {BEGIN!r} and {END!r}; put them where the table shall stand")
    page.write_text(between.sub(lambda _: f"{BEGIN}\n\n{table(document)}\n\n{END}", text))


def draw(document: Mapping[str, Any], picture: Path = PICTURE) -> bool:
    """Draw the times on logarithmic scales; return False where there is no matplotlib."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 -- only the picture needs it
    except ImportError:
        return False
    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 -- after the choice of a backend without a screen

    sizes = document["sizes"]
    figure, axes = plt.subplots(figsize=(8, 4.2), dpi=100)
    ends: list[float] = []
    rows = [(label, document["operations"][name]) for name, label in PLOTTED.items() if name in document["operations"]]
    for label, figures in sorted(rows, key=lambda row: -row[1][str(sizes[-1])]["ms"]):
        times = [figures[str(size)]["ms"] for size in sizes]
        (line,) = axes.plot(sizes, times, marker="o", markersize=4, linewidth=1.6)
        # Labels of lines that end together stand below each other.
        ends.append(min(times[-1], ends[-1] / 1.55) if ends else times[-1])
        place = (sizes[-1] * 1.15, ends[-1])
        axes.annotate(f"{label}, {shown(times[-1])} ms", place, va="center", fontsize=8, color=line.get_color())
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(sizes[0] * 0.8, sizes[-1] * 25)
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=8)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _place: f"{value:g}")
    axes.tick_params(axis="y", labelsize=8)
    axes.set_xlabel("resources", fontsize=8)
    axes.set_ylabel("ms", fontsize=8)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(picture, metadata={"Software": ""})
    plt.close(figure)
    return True


def read(path: Path = PUBLISHED) -> dict[str, Any]:
    """Return a published result."""
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def main() -> int:
    """Measure, print, publish."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.growth", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="10000,100000,1000000", help="numbers of resources, comma separated")
    parser.add_argument("--publish", action="store_true", help="write bench/growth.json and docs/performance.md")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",") if size.strip().isdigit()]
    if not sizes or sizes != sorted(set(sizes)) or sizes[0] < 1000:
        parser.error("--sizes needs growing numbers from 1000 on, such as 10000,100000")
    document = measure(sizes)
    print(table(document))
    if given.publish:
        PUBLISHED.write_text(json.dumps(document, indent=1) + "\n")
        write_page(document)
        if not draw(document):
            print("no picture: pip install --group bench", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
