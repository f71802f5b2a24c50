"""The catalogue of findings by code: of requests (MT), works (MW), hosted clusters (HCP) and the system (MD)."""

from collections.abc import Mapping
from typing import Final

from maestropy.trace.findings.checks import PRETTY as PRETTY
from maestropy.trace.findings.checks import SQL as SQL
from maestropy.trace.findings.entry import Entry as Entry
from maestropy.trace.findings.hcp_codes import HCP_CODES
from maestropy.trace.findings.request_codes import REQUEST_CODES
from maestropy.trace.findings.system_codes import SYSTEM_CODES
from maestropy.trace.findings.work_codes import WORK_CODES

CODES: Final[Mapping[str, Entry]] = {
    entry.code: entry for entry in (*REQUEST_CODES, *WORK_CODES, *HCP_CODES, *SYSTEM_CODES)
}
