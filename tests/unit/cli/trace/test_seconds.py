"""A time that makes no sense is rejected with its flag, before anything is opened."""

import pytest

from maestropy.cli.main import call

HCP = "/subscriptions/s/resourceGroups/g/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters/c"


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0", "1e308", "86401"])
@pytest.mark.parametrize(
    "command",
    [
        "trace work --work-name hello --print-sql --timeout",
        "trace work --work-name hello --offline . --timeout",
        f"trace hcp {HCP} --offline . --timeout",
        f"trace hcp {HCP} --offline . --interval",
    ],
    ids=["work-print-sql", "work-timeout", "hcp-timeout", "hcp-interval"],
)
def test_time_without_sense(command: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    flag = command.rpartition(" ")[2]
    assert call([*command.split(), value]) == 2
    error = capsys.readouterr().err
    assert flag in error
    assert "write seconds, such as 10, at most 86400" in error
