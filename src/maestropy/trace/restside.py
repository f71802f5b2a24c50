"""Ask the REST API instead of the database, through the SDK.

It knows less: neither the source of a work, nor its operation id, nor what was deleted. What its search language
cannot say is looked for in the pages it sends.
"""

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.errors import Invalid, MaestroError, NotFound
from maestropy.sdk.selector import quoted
from maestropy.trace.errors import BadQuestion, NoAccess
from maestropy.trace.work import reading
from maestropy.trace.work.model import Row
from maestropy.trace.work.question import Manifest, Question
from maestropy.trace.work.sides import Found
from maestropy.trace.work.statements import MOST

_SINGLY = 200
_NAME = "payload->'metadata'->>'name'"
_NEWEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RestSide:
    """The REST API of a Maestro server."""

    client: AsyncMaestro

    @property
    def place(self) -> str:
        """Who is asked."""
        return f"REST API {self.client.settings.api_url}"

    async def find(self, question: Question) -> Found:
        """Return all that fits a question."""
        try:
            return Found(rows=tuple(await self._rows(question)))
        except Invalid as error:
            raise BadQuestion(f"--{question.entry}: {error}") from error
        except MaestroError as error:
            raise NoAccess(f"{self.place} does not answer: {error}") from error

    async def _rows(self, question: Question) -> Sequence[Row]:
        match question.entry:
            case "resource-id" | "file" if len(question.values) <= _SINGLY:
                return await self._by_ids(question)
            case "applied-work":
                found = await self._by_ids(question)
                return found or await self._list(question, _any_of(_NAME, question.values))
            case "work-name":
                return await self._list(question, _any_of(_NAME, question.values))
            case "label":
                key, value = question.values
                return await self._list(question, f"payload->'metadata'->'labels'->>{quoted(key)} = {quoted(value)}")
            case "name-like":
                part = question.values[0].lower()
                found = await self._list(question, "", fits=lambda row: part in row.work_name.lower())
                return sorted(found, key=lambda row: str(row.created), reverse=True)[:_NEWEST]
            case "op-id":
                text = f"payload->>'logtracing' like {quoted('%' + question.values[0] + '%')}"
                return await self._list(question, text)
            case "manifest":
                wanted = question.manifest
                assert wanted is not None
                return await self._list(question, "", fits=lambda row: holds(row, wanted))
            case _:
                ids = set(question.values)
                return await self._list(question, "", fits=lambda row: row.id in ids)

    async def _by_ids(self, question: Question) -> Sequence[Row]:
        rows = []
        for each in question.values:
            try:
                rows.append(reading.bundle(await self.client.bundles.get(each)))
            except NotFound:
                continue
        return [row for row in rows if question.consumer in {"", row.consumer}]

    async def _list(
        self, question: Question, search: str, *, fits: Callable[[Row], bool] = lambda _: True
    ) -> Sequence[Row]:
        narrowing = {"consumer_name": question.consumer, "source": question.source}
        terms = [search, *(f"{name} = {quoted(value)}" for name, value in narrowing.items() if value)]
        rows: list[Row] = []
        text = " and ".join(term for term in terms if term)
        async with aclosing(self.client.bundles.list(search=text)) as bundles:
            async for each in bundles:
                row = reading.bundle(each)
                if fits(row):
                    rows.append(row)
                if len(rows) >= MOST and question.entry != "name-like":
                    break
        return rows


def holds(row: Row, wanted: Manifest) -> bool:
    """Whether a work has that manifest."""
    for manifest in row.manifests:
        key = reading.manifest_key(manifest)
        if (
            key.name == wanted.name
            and key.kind.lower() in wanted.kinds
            and wanted.namespace in {"", key.namespace}
            and wanted.group in {"", key.group}
        ):
            return True
    return False


def _any_of(path: str, values: Sequence[str]) -> str:
    if len(values) == 1:
        return f"{path} = {quoted(values[0])}"
    return f"{path} in ({', '.join(quoted(each) for each in values)})"
