"""Load the adapter that a user names: a file, `file.py:name`, a folder, or `package.module:name`."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from maestropy.adapter.decide import failure
from maestropy.adapter.definition import Adapter
from maestropy.adapter.errors import BadAdapter, Exited, NoSuchAdapter

DEFAULT_FILE = "adapter.py"


def load(reference: str) -> Adapter:
    """Import and return an adapter."""
    location, _, name = reference.partition(":")
    path = Path(location)
    if path.is_dir():
        path = path / DEFAULT_FILE
        if not path.is_file():
            raise NoSuchAdapter(f"there is no {DEFAULT_FILE} in {location}; name the file")
    if path.is_file() and path.suffix != ".py":
        raise NoSuchAdapter(f"{location} is not a Python file; the name of an adapter's file ends in .py")
    module = _from_file(path) if path.suffix == ".py" else _from_name(location)
    adapters = {key: value for key, value in vars(module).items() if isinstance(value, Adapter)}
    if name:
        if name not in adapters:
            raise NoSuchAdapter(f"{location} has no adapter {name!r}; it has: {', '.join(adapters) or 'none'}")
        return adapters[name]
    if len(set(adapters.values())) != 1:
        problem = (
            f"has {len(adapters)} adapters ({', '.join(adapters)}); name one: {location}:NAME"
            if adapters
            else "has no adapter"
        )
        raise BadAdapter(f"{location} {problem}; an adapter is created by `Adapter('name')`")
    return next(iter(adapters.values()))


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise NoSuchAdapter(f"there is no file {path}")
    name = f"_adapter_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    # The adapter can import modules of its own folder, as a script can.
    sys.path.insert(0, str(path.parent.absolute()))
    try:
        sys.modules[name] = module
        failure.call(spec.loader.exec_module, module)
    except Exception as error:
        raise _unusable(str(path), error) from error
    finally:
        sys.path.remove(str(path.parent.absolute()))
    return module


def _from_name(name: str) -> ModuleType:
    try:
        return failure.call(importlib.import_module, name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == name.partition(".")[0]:
            raise NoSuchAdapter(f"{name} is neither a file nor a module; give the path of an adapter.py") from error
        raise _unusable(name, error) from error


def _unusable(module: str, raised: Exception) -> BadAdapter:
    error = raised.__cause__ if isinstance(raised, Exited) and raised.__cause__ else raised
    code, number = failure.origin(error)
    line = f", line {number} of {code.co_filename}" if code else ""
    if isinstance(error, SyntaxError):
        line = f", line {error.lineno}"
    return BadAdapter(f"{module} cannot be imported{line}: {failure.named(error)}")
