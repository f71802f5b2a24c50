"""Puts this folder on the import path, so that tests share modules such as `certificates`.

Nobody's own environments of `maestro config` may change what a test sees: there are none, unless a test makes them.
Generated examples may take as long as they like: how busy the machine is, is nothing a test should judge.
"""

import os

from hypothesis import settings

settings.register_profile("pymaestro", deadline=None)
settings.load_profile("pymaestro")
os.environ["XDG_CONFIG_HOME"] = "/nonexistent"
