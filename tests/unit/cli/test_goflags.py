import pytest

from maestropy.cli import goflags

SWITCHES = {"--enable-https"}
VALUED = {"--client-id", "-v"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("--client-id=a", "--client-id=a", id="equals"),
        pytest.param("--client-id a", "--client-id=a", id="two-words"),
        pytest.param("--client-id=", "--client-id=", id="empty-value"),
        pytest.param("--client-id=a=b", "--client-id=a=b", id="equals-in-the-value"),
        pytest.param("--client-id -x", "--client-id=-x", id="value-like-a-flag"),
        pytest.param("--client-id", "--client-id", id="value-missing"),
        pytest.param("--enable-https", "--enable-https=true", id="switch"),
        pytest.param("--enable-https=false", "--enable-https=false", id="switch-off"),
        pytest.param("--enable-https false", "false --enable-https=true", id="switch-takes-no-word"),
        pytest.param("-v=4", "-v=4", id="v-equals"),
        pytest.param("-v 4", "-v=4", id="v-two-words"),
        pytest.param("-v4", "-v=4", id="v-joined"),
        pytest.param("--v=4", "-v=4", id="v-long"),
        pytest.param("--v 4", "-v=4", id="v-long-two-words"),
        pytest.param("-v=1 --client-id=a -v 2", "--client-id=a -v=2", id="the-last-counts"),
        pytest.param("--logtostderr --alsologtostderr=true -v=1", "-v=1", id="klog-switches-are-dropped"),
        pytest.param("--log_dir /x --vmodule=a=2 -v=1", "-v=1", id="klog-values-are-dropped"),
        pytest.param("--log-dir /x --skip_headers -v=1", "-v=1", id="klog-flags-with-dashes"),
        pytest.param("--client_id=a_b --enable_https", "--client-id=a_b --enable-https=true", id="underscores"),
        pytest.param("--no_pe=1", "--no_pe=1", id="unknown-stays-as-written"),
        pytest.param("--nope --help -h", "--nope --help -h", id="unknown-stays"),
        pytest.param("-- --client-id=a", "-- --client-id=a", id="nothing-is-a-flag-after-two-dashes"),
    ],
)
def test_reads_as_go_does(line: str, expected: str) -> None:
    read = goflags.read(line.split(), switches=SWITCHES, valued=VALUED)
    flags = [name if value is None else f"{name}={value}" for name, value in read.flags.items()]
    assert [*read.words, *flags] == expected.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [("server -v=4", 4), ("server --v 10 --x", 10), ("server -v4", 4), ("server", 0), ("", 0), ("server -v=x", 0)],
)
def test_verbosity(line: str, expected: int) -> None:
    assert goflags.verbosity(line.split()) == expected
