"""What every process writes about its work: one record per decision, in the words that runbooks search for.

The package knows no domain beyond names. It formats, redacts and writes; it never decides what is worth saying.
"""

from maestropy.journal.emit import Format as Format
from maestropy.journal.emit import Journal as Journal
from maestropy.journal.emit import stderr as stderr
