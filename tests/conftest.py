"""Puts this folder on the import path, so that tests share modules such as `certificates`.

Nobody's own environments of `maestro config` may change what a test sees: there are none, unless a test makes them.
What a shell starts in the background ignores Ctrl-C, and so would every program that a test interrupts: not here.
Generated examples may take as long as they like: how busy the machine is, is nothing a test should judge.
"""

import os
import signal

from hypothesis import settings

settings.register_profile("maestropy", deadline=None)
settings.load_profile("maestropy")
os.environ["XDG_CONFIG_HOME"] = "/nonexistent"
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
