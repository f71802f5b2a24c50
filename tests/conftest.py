"""Puts this folder on the import path, so that tests share modules such as `certificates`.

Nobody's own environments of `maestro config` may change what a test sees: there are none, unless a test makes them.
"""

import os

os.environ["XDG_CONFIG_HOME"] = "/nonexistent"
