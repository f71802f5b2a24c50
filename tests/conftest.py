"""Settings of every test: async tests, their order, memory, generated examples, the environment and Ctrl-C.

- An `async def` test runs as `tests.async_tests` says; `tests.file_order` orders the files for several workers.
- The garbage collector does not search the thousands of tests and their modules again and again: they stay to the end.
- Generated examples have no deadline, because a busy machine is slow; a failure prints how to repeat its example.
- The `maestro config` of the person who runs the tests is not read.
- A shell that starts the tests in the background ignores Ctrl-C, and so would every program that a test interrupts;
  the default is restored.
"""

import gc
import os
import signal

from hypothesis import settings

from tests.async_tests import pytest_pyfunc_call as pytest_pyfunc_call
from tests.file_order import pytest_collection_modifyitems as pytest_collection_modifyitems

settings.register_profile("maestropy", deadline=None, print_blob=True)
settings.load_profile("maestropy")
os.environ["XDG_CONFIG_HOME"] = "/nonexistent"
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Exempt everything that lives until the end from garbage collection."""
    gc.collect()
    gc.freeze()
