"""The structured log of server and agent: one log record per decision, with the messages and keys of the Go Maestro.

The package formats, redacts and writes log records. It does not decide what is logged.
"""

from maestropy.journal.emit import Journal as Journal
from maestropy.journal.emit import LogFormat as LogFormat
from maestropy.journal.emit import stderr as stderr
