"""Put the page together: one file that needs no network, no server and no other file.

The parts are ordinary HTML, CSS and JavaScript beside this module. The data travel compressed, so that no text of a log
can end a tag; the browser shows texts as texts. A policy in the page allows exactly this style and this script, by
their hashes, and nothing else.
"""

import base64
import gzip
import hashlib
from functools import cache
from html import escape
from importlib import resources
from typing import Any, Final

import orjson

_SCRIPTS: Final = ("format.js", "data.js", "overview.js", "table.js", "waterfall.js", "request.js", "app.js")


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
    return resources.files("maestropy.trace.request").joinpath("page_parts", name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
