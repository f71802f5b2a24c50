import pytest

from maestropy.cli.parsing import go_flags
from maestropy.cli.parsing.settings_commands import SettingsCommand

SWITCHES = {"--enable-https"}
VALUED = {"--client-id", "-v"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("--client-id=a", "--client-id=a", id="equals"),
        pytest.param("--client-id a", "--client-id=a", id="two-arguments"),
        pytest.param("--client-id=", "--client-id=", id="empty-value"),
        pytest.param("--client-id=a=b", "--client-id=a=b", id="equals-in-the-value"),
        pytest.param("--client-id -x", "--client-id=-x", id="value-like-a-flag"),
        pytest.param("--client-id", "--client-id", id="value-missing"),
        pytest.param("--enable-https", "--enable-https=true", id="switch"),
        pytest.param("--enable-https=false", "--enable-https=false", id="switch-off"),
        pytest.param("--enable-https false", "false --enable-https=true", id="switch-takes-no-value"),
        pytest.param("-v=4", "-v=4", id="v-equals"),
        pytest.param("-v 4", "-v=4", id="v-two-arguments"),
        pytest.param("-v4", "-v=4", id="v-joined"),
        pytest.param("--v=4", "-v=4", id="v-long"),
        pytest.param("--v 4", "-v=4", id="v-long-two-arguments"),
        pytest.param("-v=1 --client-id=a -v 2", "--client-id=a -v=2", id="last-one-wins"),
        pytest.param("--logtostderr --alsologtostderr=true -v=1", "-v=1", id="klog-switches-are-dropped"),
        pytest.param("--legacy_stderr_threshold_behavior=false -v=1", "-v=1", id="klog-switch-of-2026"),
        pytest.param("--log_dir /x --vmodule=a=2 -v=1", "-v=1", id="klog-values-are-dropped"),
        pytest.param("--log-dir /x --skip_headers -v=1", "-v=1", id="klog-flags-with-dashes"),
        pytest.param("--client_id=a_b --enable_https", "--client-id=a_b --enable-https=true", id="underscores"),
        pytest.param("--no_pe=1", "--no_pe=1", id="unknown-stays-as-written"),
        pytest.param("--nope --help -h", "--nope --help -h", id="unknown-stays"),
        pytest.param("-- --client-id=a", "-- --client-id=a", id="no-flags-after-two-dashes"),
    ],
)
def test_command_line_is_parsed_as_by_go(line: str, expected: str) -> None:
    read = go_flags.read(line.split(), switches=SWITCHES, valued=VALUED)
    flags = [name if value is None else f"{name}={value}" for name, value in read.flags.items()]
    assert [*read.remaining, *flags] == expected.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("-v 4 server --client-id=a", "server -v 4 --client-id=a", id="verbosity"),
        pytest.param(
            "--logtostderr --vmodule=a=1 consumer list", "consumer --logtostderr --vmodule=a=1 list", id="klog"
        ),
        pytest.param("server -v=4", "server -v=4", id="nothing-before"),
        pytest.param("--help", "--help", id="help"),
        pytest.param("--version server", "--version server", id="another-flag"),
        pytest.param("-v", "-v", id="no-command"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_global_flags_may_stand_before_the_command(line: str, expected: str) -> None:
    assert go_flags.command_first(line.split()) == expected.split()


def test_global_flags_of_go_commands_are_dropped() -> None:
    line = "consumer list -v 4 --kubeconfig /k --legacy_stderr_threshold_behavior -o json --alsologtostderrthreshold 2"
    assert go_flags.without_global_flags(line.split()) == ["consumer", "list", "-o", "json"]
    # Where a command has it, it keeps its meaning.
    assert go_flags.read(["--kubeconfig=/k"], switches=(), valued=("--kubeconfig",)).flags == {"--kubeconfig": "/k"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [("server -v=4", 4), ("server --v 10 --x", 10), ("server -v4", 4), ("server", 0), ("", 0), ("server -v=x", 0)],
)
def test_verbosity(line: str, expected: int) -> None:
    assert go_flags.verbosity(line.split()) == expected


def test_flags_that_would_send_the_log_elsewhere_are_noted() -> None:
    line = "--logtostderr=false --log_file /x --log_dir=/y --logtostderr --logtostderr=true --vmodule=a=2"
    assert go_flags.read(line.split(), switches=(), valued=()).ignored == ["--logtostderr", "--log_file", "--log_dir"]


def test_command_warns_once_of_a_log_file(capsys: pytest.CaptureFixture[str]) -> None:
    command = SettingsCommand(name="server", flags={}, execute=lambda _: 0, text="", examples="")
    assert command.run(["--logtostderr=false", "--log_file", "/x"]) == 0
    assert capsys.readouterr().err == (
        "warning: --logtostderr, --log_file without effect: the log goes to standard error, not to files\n"
    )
    assert command.run(["--logtostderr", "--vmodule=a=2"]) == 0
    assert not capsys.readouterr().err
