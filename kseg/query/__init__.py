"""SQL over logs, by DuckDB: a view for each topic, and for what else kseg knows of the directories."""

from importlib import import_module

from kseg.errors import UsageError, missing_library


def require_libraries() -> None:
    """Raises UsageError, with the command that installs it, if one is missing."""
    for name in ("pyarrow", "duckdb"):
        try:
            import_module(name)
        except ImportError as error:
            raise UsageError(missing_library(name, "sql")) from error
