"""Recorded incidents of a Go Maestro, unpacked once."""

import tarfile
from pathlib import Path

import pytest

ARCHIVE = Path(__file__).parents[3] / "data" / "trace_incidents.tar.xz"


@pytest.fixture(scope="session")
def incidents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("incidents")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder
