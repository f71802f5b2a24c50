"""No public file tells a user to install another project, or this one from an unnamed package index."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import maestropy
from maestropy import installation
from maestropy.adapter.tooling import scaffold

ROOT = Path(__file__).parents[2]
PUBLIC = ("README.md", "CHANGELOG.md", "docs", "src", "deploy", "charts", "skills", "examples")
_FORMER_NAME = "py" + "maestro"
_INSTALL = re.compile(r"\b(?:pip|pipx|uv|poetry)3?\b[^\n`]*?\b(?:install|add|run)\b([^\n`;]*)")
_BARE_NAME = re.compile(rf"(?<![\w./@-])(?:{_FORMER_NAME}|{installation.DISTRIBUTION})(?![\w.-]*\.whl)(?![\w./-])")


def bare_names(text: str) -> list[str]:
    """The install commands in a text that name the project without a path, a wheel or an address."""
    return [
        command.group().strip()
        for command in _INSTALL.finditer(text)
        if _BARE_NAME.search(command.group(1)) and "--index-url" not in command.group()
    ]


def public_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PUBLIC],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [ROOT / name for name in listed if (ROOT / name).is_file()]


@pytest.mark.parametrize(
    "command",
    [
        f"pip install {installation.DISTRIBUTION}",
        f"pip install '{installation.DISTRIBUTION}[all]'",
        f"RUN pip install --no-cache-dir '{installation.DISTRIBUTION}[agent]'",
        f"python -m pip install --upgrade {installation.DISTRIBUTION}==0.2.0",
        f"uv tool install {_FORMER_NAME}",
    ],
)
def test_bare_name_is_found(command: str) -> None:
    assert bare_names(command)


@pytest.mark.parametrize(
    "command",
    [
        "pip install '.[all]'",
        f"pip install 'dist/{installation.WHEEL}[agent]'",
        f"run pip install '.[all]' in a clone of {installation.DISTRIBUTION}".partition(" in ")[0],
        "pip install --group bench",
    ],
)
def test_path_or_wheel_is_allowed(command: str) -> None:
    assert bare_names(command) == []


def test_no_public_file_installs_the_bare_name() -> None:
    found = {}
    for path in public_files():
        # The one module that words the hint names the clone, not an index.
        text = path.read_text(encoding="utf-8", errors="replace").replace(installation.hint("all"), "")
        if path.name != "installation.py" and bare_names(text):
            found[str(path.relative_to(ROOT))] = bare_names(text)
    assert found == {}


def test_install_hints_come_from_one_module() -> None:
    package = ROOT / "src" / "maestropy"
    writers = {str(path.relative_to(package)) for path in package.rglob("*.py") if "pip install" in path.read_text()}
    assert writers == {"installation.py", "adapter/tooling/scaffold.py"}
    users = {
        path.relative_to(package).parts[0] for path in package.rglob("*.py") if "installation.hint(" in path.read_text()
    }
    assert users == {"cli", "sandbox", "telemetry"}


def test_hint_installs_an_extra_from_a_clone() -> None:
    assert installation.hint("server") == "run pip install '.[server]' in a clone of maestropy"


def test_extras_and_version_match_the_project_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["name"] == installation.DISTRIBUTION
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "maestropy._version.__version__"}
    assert set(project["project"]["optional-dependencies"]) == set(installation.EXTRAS)


def test_scaffold_image_installs_the_wheel_of_this_version() -> None:
    files = scaffold.files("hello")
    wheel = f"maestropy-{maestropy.__version__}-py3-none-any.whl"
    lines = files["deploy/Containerfile"].splitlines()
    assert lines[1:4] == [
        f"ARG WHEEL={wheel}",
        "COPY $WHEEL /wheels/",
        'RUN pip install --no-cache-dir "/wheels/${WHEEL}[agent]"',
    ]
    assert wheel in files["README.md"]
    assert "make wheel" in files["README.md"]
    assert [name for name, text in files.items() if bare_names(text)] == []
