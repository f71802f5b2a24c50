"""The list parameters `search` and `orderBy` as SQL: pure, and the only place where the two meet.

No text of a user reaches SQL. Column names are constants of `columns`; keys, values, patterns and numbers are
parameters. What does not fit is refused before the database sees it, with a reason that names the field.
"""

from maestropy.store.search.columns import BUNDLES as BUNDLES
from maestropy.store.search.columns import CONSUMERS as CONSUMERS
from maestropy.store.search.columns import Collection as Collection
from maestropy.store.search.columns import ColumnType as ColumnType
from maestropy.store.search.compilation import compile_search as compile_search
from maestropy.store.search.emit import Condition as Condition
from maestropy.store.search.errors import SearchError as SearchError
from maestropy.store.search.order import compile_order as compile_order
