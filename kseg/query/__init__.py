"""SQL over logs, through DuckDB: a view for each topic, and tables of kseg's other knowledge about directories."""

from importlib import import_module

from kseg.errors import UsageError, missing_library


def require_libraries() -> None:
    """Raise UsageError with the install command if a library is missing."""
    for name in ("pyarrow", "duckdb"):
        try:
            import_module(name)
        except ImportError as error:
            raise UsageError(missing_library(name, "sql")) from error
