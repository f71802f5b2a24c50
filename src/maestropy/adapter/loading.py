"""Find the adapter that a user names: a file, `file.py:name`, a folder with one, or `package.module:name`."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from maestropy.adapter.definition import Adapter
from maestropy.adapter.errors import BadAdapter

DEFAULT_FILE = "adapter.py"


def load(where: str) -> Adapter:
    """Import and return an adapter."""
    place, _, name = where.partition(":")
    path = Path(place)
    if path.is_dir():
        path = path / DEFAULT_FILE
        if not path.is_file():
            raise BadAdapter(f"there is no {DEFAULT_FILE} in {place}; name the file")
    module = _from_file(path) if path.suffix == ".py" else _from_name(place)
    found = {key: value for key, value in vars(module).items() if isinstance(value, Adapter)}
    if name:
        if name not in found:
            raise BadAdapter(f"{place} has no adapter {name!r}; it has: {', '.join(found) or 'none'}")
        return found[name]
    if len(set(found.values())) != 1:
        known = f"has {len(found)} adapters ({', '.join(found)}); name one: {place}:NAME" if found else "has no adapter"
        raise BadAdapter(f"{place} {known}; an adapter is made by `Adapter('name')`")
    return next(iter(found.values()))


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise BadAdapter(f"there is no file {path}")
    name = f"_adapter_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    # Its neighbours can be imported as if it had been run by itself.
    sys.path.insert(0, str(path.parent.absolute()))
    try:
        sys.modules[name] = module
        spec.loader.exec_module(module)
    except Exception as error:
        raise _unusable(str(path), error) from error
    finally:
        sys.path.remove(str(path.parent.absolute()))
    return module


def _from_name(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == name.partition(".")[0]:
            raise BadAdapter(f"{name} is neither a file nor a module; give the path of an adapter.py") from error
        raise _unusable(name, error) from error


def _unusable(what: str, error: Exception) -> BadAdapter:
    line = ""
    if error.__traceback__ is not None:
        trace = error.__traceback__
        while trace.tb_next is not None:
            trace = trace.tb_next
        line = f", line {trace.tb_lineno} of {trace.tb_frame.f_code.co_filename}"
    if isinstance(error, SyntaxError):
        line = f", line {error.lineno}"
    return BadAdapter(f"{what} cannot be imported{line}: {type(error).__name__}: {error}")
