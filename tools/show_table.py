"""Shows the first records of an export's Parquet files: python tools/show_table.py DIRECTORY."""

import argparse
import sys

import pyarrow.parquet as pq
from rich import box
from rich.console import Console
from rich.table import Table

ROWS = 6
WIDTH = 30
PRINTED_WIDTH = 160


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory")
    table = pq.read_table(parser.parse_args().directory)
    shown = Table(box=box.SIMPLE, caption=f"{table.num_rows} rows", caption_justify="left")
    for name in table.column_names:
        shown.add_column(name, no_wrap=True)
    for row in table.slice(0, ROWS).to_pylist():
        shown.add_row(*map(_text, row.values()))
    Console(width=None if sys.stdout.isatty() else PRINTED_WIDTH).print(shown)


def _text(value: object) -> str:
    text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"


if __name__ == "__main__":
    main()
