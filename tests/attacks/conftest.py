"""Fixtures of the attack tests."""

from tests.stack.conftest import database as database
from tests.stack.conftest import postgres as postgres
