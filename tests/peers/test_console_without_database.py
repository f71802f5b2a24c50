"""The console of a fleet whose database is gone."""

import time

from tests.peers.browser import tab
from tests.peers.console_fleet import RealFleet
from tests.peers.test_console_incidents import _MOST_SECONDS, browser_port, fleet, pytestmark  # noqa: F401


async def test_database_that_is_gone_is_said_on_the_landing_page(
    fleet: RealFleet,  # noqa: F811 - the fixture
    browser_port: int,  # noqa: F811 - the fixture
) -> None:
    """A fleet of its own: it has no database after it."""
    async with tab(browser_port) as page:
        await page.visit(fleet.console)
        await page.until("document.querySelector('#banner').hidden")
        began = time.monotonic()
        fleet.stop_database()
        await page.until("!document.querySelector('#banner').hidden")
        assert "Maestro cannot be read since" in await page.run("document.querySelector('#banner').textContent")
        assert time.monotonic() - began <= _MOST_SECONDS
        assert await page.run("document.querySelectorAll('.tile').length") > 0
