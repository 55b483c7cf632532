"""Shows the first records of an export's Parquet files: python tools/show_table.py DIRECTORY."""

import argparse

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

ROWS = 6


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory")
    table = pq.read_table(parser.parse_args().directory)
    shown = Table(*table.column_names, caption=f"{table.num_rows} rows", caption_justify="left")
    for row in table.slice(0, ROWS).to_pylist():
        shown.add_row(*map(_text, row.values()))
    Console().print(shown)


def _text(value: object) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


if __name__ == "__main__":
    main()
