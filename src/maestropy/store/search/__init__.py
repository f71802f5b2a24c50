"""Compile the list parameters `search` and `orderBy` of the REST API to SQL.

Pure. No user input becomes SQL text: column names are constants of `columns`; keys, values, patterns and numbers are
parameters. An invalid search is rejected before the database sees it, with a reason that names the field.
"""

from maestropy.store.search.columns import CONSUMERS as CONSUMERS
from maestropy.store.search.columns import RESOURCES as RESOURCES
from maestropy.store.search.columns import Collection as Collection
from maestropy.store.search.columns import ColumnType as ColumnType
from maestropy.store.search.compilation import compile_search as compile_search
from maestropy.store.search.emit import SqlCondition as SqlCondition
from maestropy.store.search.errors import SearchError as SearchError
from maestropy.store.search.order import OrderKey as OrderKey
from maestropy.store.search.order import compile_order as compile_order
from maestropy.store.search.order import order_keys as order_keys
from maestropy.store.search.serving import Reach as Reach
