"""Name the other works that own an object of a work, as the picture knows them. Pure; `trace work` finds them."""

from collections.abc import Iterable
from typing import Any, Final

from maestropy.console.pages import links
from maestropy.console.picture import Picture
from maestropy.trace.work import identities

CODE: Final = "MW-110"


def others(picture: Picture, owners: Iterable[str], *, work_id: str) -> list[dict[str, str]]:
    """Return the works of AppliedManifestWorks but for one work, with the address of their pages."""
    names = (identities.split_applied_work_name(owner) for owner in owners)
    ids = dict.fromkeys(name[1] for name in names if name is not None and name[1] != work_id)
    found = (picture.works.get(other) for other in ids)
    return [
        {"id": row.id, "name": row.name or row.id, "consumer": row.consumer, "link": links.work(row.id)}
        for row in found
        if row is not None
    ]


def name(model: dict[str, Any], works: list[dict[str, str]]) -> None:
    """Put the other works into the finding about shared objects, and into the verdict if it is that."""
    if not works:
        return
    several = ", ".join(work["name"] for work in works)
    for item in model["findings"]:
        if item["code"] == CODE:
            item["works"] = works
            item["title"] = f"{item['title'].removesuffix('.')}: also to {several}."
            if model["code"] == CODE:
                model["summary"] = item["title"]
