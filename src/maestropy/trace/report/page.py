"""Build the HTML report: one file that needs no network, no server and no other file.

The parts are HTML, CSS and JavaScript files beside this module. The data is compressed, so no log text can close a tag,
and the browser shows texts as text. The content security policy of the page allows only this style and this script, by
their hashes.
"""

import base64
import gzip
import hashlib
from functools import cache
from html import escape
from importlib import resources
from typing import Any, Final

import orjson

from maestropy import __version__
from maestropy.trace.logs import tracer
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.report.json_model import stamp
from maestropy.trace.report.log_lines import LineQuotes
from maestropy.trace.report.page_data import Rows

_SCRIPTS: Final = ("format.js", "data.js", "overview.js", "table.js", "waterfall.js", "request.js", "app.js")


def rows_of(environment: Environment) -> Rows:
    """Return empty rows of a page over these logs."""
    return Rows(environment=environment, quote=LineQuotes(environment.writers).line)


def html(rows: Rows, *, code: int, now: float) -> str:
    """Return the page over the requests in `rows`."""
    environment = rows.environment
    about = {"line": _about(environment), "version": __version__, "generatedAt": stamp(now), "exitCode": code}
    model = rows.model(notes=tracer.log_findings(environment), about=about)
    return page(model, title=f"Maestro requests: {rows.count:,}")


def _about(environment: Environment) -> str:
    """Return one line about the logs."""
    firsts = [writer.first for writer in environment.writers if writer.first]
    first, last = stamp(min(firsts, default=0.0)) or "", stamp(environment.end) or ""
    day, end = first[:10], last[11:19] if first[:10] == last[:10] else last[:19].replace("T", " ")
    servers, agents = {server.pod for server in environment.servers}, {server.pod for server in environment.agent_logs}
    parts = [
        f"{day} {first[11:19]} to {end} UTC" if first else "no times",
        f"{len(servers)} server{'s' * (len(servers) != 1)}, {len(agents)} agent{'s' * (len(agents) != 1)}",
        f"{sum(writer.bytes for writer in environment.writers) / 1e6:,.1f} MB of logs",
    ]
    return "  ·  ".join(parts)


def page(model: dict[str, Any], *, title: str) -> str:
    """Return the page over a model of `pagerows`."""
    style = _part("page.css")
    script = "(() => {\n'use strict';\n" + "\n".join(_part(name) for name in _SCRIPTS) + "\n})();\n"
    packed = gzip.compress(orjson.dumps(model, option=orjson.OPT_NON_STR_KEYS), compresslevel=6, mtime=0)
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        "title": escape(title),
        "style": style,
        "script": script,
        "data": base64.b64encode(packed).decode("ascii"),
    }
    text = _part("page.html")
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part, 1)
    return text


@cache
def _part(name: str) -> str:
    return resources.files("maestropy.trace.report").joinpath("page_parts", name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
