"""Settings that a command line can give: declared once, as documented fields of frozen dataclasses."""

from pymaestro.flags.declaration import Flag as Flag
from pymaestro.flags.declaration import flag as flag
from pymaestro.flags.declaration import flags_of as flags_of
from pymaestro.flags.errors import SettingsError as SettingsError
from pymaestro.flags.filling import fill as fill
