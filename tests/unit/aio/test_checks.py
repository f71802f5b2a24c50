"""Named checks: time limits, unexpected errors, and the text of `/readyz?verbose`."""

import asyncio
from collections.abc import Sequence

from maestropy.aio import checks


async def test_check_that_does_not_answer_is_failed_in_time() -> None:
    async def hang() -> Sequence[checks.Check]:
        await asyncio.Event().wait()
        return ()

    (check,) = await checks.bounded("database", hang, seconds=0.01, remedy="check the network")
    assert check == checks.failed("database", "no answer within 0.01 s", remedy="check the network")


async def test_unexpected_error_is_a_failed_check() -> None:
    async def crash() -> Sequence[checks.Check]:
        raise RuntimeError("boom")

    (check,) = await checks.bounded("database", crash, seconds=1)
    assert check == checks.failed("database", "RuntimeError: boom")


def test_verbose_text_has_the_form_of_the_api_server() -> None:
    results = [checks.ok("a"), checks.warning("b", "slow"), checks.not_seen("c", "no rights"), checks.ok("d", "fine")]
    expected = "[+]a ok\n[!]b warning: slow\n[!]c not seen: no rights\n[+]d ok: fine\nreadyz check passed\n"
    assert checks.verbose(results, title="readyz") == expected
    assert checks.verbose([checks.failed("a", "gone")], title="readyz") == "[-]a failed: gone\nreadyz check failed\n"
