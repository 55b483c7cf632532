"""Exports and queries by Spark, compared with its Kafka connector and plain pyarrow, for docs/help/benchmarks-spark.md.

python -m bench.spark [--only rates …] [--repeat 5] [--markdown PAGE]

Each part stands alone: `rates` (needs Maven: a real broker and the connector), `tables`, `start`, `narrow`,
`memory`, `plan`.
"""

import argparse
import datetime
import os
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.machine import describe
from bench.peers import fetch_jars
from bench.spark_parts import Figure, memory, narrow, plan, rates, start
from bench.spark_tables import tables

PARTS: dict[str, Callable[[Path, int], Iterable[Figure]]] = {
    "rates": rates,
    "tables": tables,
    "start": start,
    "narrow": narrow,
    "memory": memory,
    "plan": plan,
}
LOAD = os.getloadavg()[0]
COLUMNS = ("part", "work", "figure", "target", "reached")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(PARTS), help="a part; may be repeated")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions (default %(default)s)")
    parser.add_argument("--markdown", type=Path, metavar="PAGE", help="also write the table there")
    arguments = parser.parse_args()
    fetch_jars("4.3.1")
    rows = [COLUMNS]
    with TemporaryDirectory(prefix="kseg-bench-") as scratch:
        for name in arguments.only or PARTS:
            work = Path(scratch) / name
            work.mkdir()
            for figure in PARTS[name](work, arguments.repeat):
                rows.append((name, *figure))
                print(" | ".join(rows[-1]), flush=True)
    if arguments.markdown is not None:
        arguments.markdown.write_text(_page(rows), encoding="utf-8")


def _page(rows: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [rows[0], tuple("-" * width for width in widths), *rows[1:]]
    table = "\n".join(f"| {' | '.join(map(str.ljust, line, widths))} |" for line in lines)
    command = f"python -m bench.spark {' '.join(sys.argv[1:])}".strip()
    today = datetime.datetime.now(datetime.UTC).date()
    load = f"Load of the machine before: {LOAD:.1f}; after: {os.getloadavg()[0]:.1f}"
    facts = "\n".join(
        f"- {line}"
        for line in [f"Date: {today}", f"Command: `{command}`", load, *describe(), f"pyspark {version('pyspark')}"]
    )
    return f"# Benchmarks of Spark\n\n{facts}\n\n{table}\n"


if __name__ == "__main__":
    main()
