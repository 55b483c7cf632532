"""Recordings in docs/pictures/ of real runs on made disks: a repair, a restore, an export."""

import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.coordinators.coordinators import classic_group, commit
from tests.log_files import NewBatch, write_segment
from tests.restore.strict_broker import StrictBroker
from tools.generators.animation import COLUMNS, Run, animated
from tools.generators.terminal import PROGRAMS, run_coloured

BOOTSTRAP = "broker:9092"
"""The new cluster's address in a picture. The runs use a broker in this process, on a free port."""
DIRECTORY = "/data"
"""The name of the runs' directory in a picture."""
RUN_TIME = re.compile(r"^kseg: [0-9.]+ s, .* CPU, .*\n?", re.MULTILINE)
"""The line of `-v` that differs between two runs, which is left out."""
RECORDS, START_MS, INTERVAL_MS = 1200, 1_795_600_000_000, 700
BUILT = (
    *("--compression", "none", "--batch-size", "2KiB", "--leader-epoch", "3"),
    *("--topic-id", "cB0eSQWxTkC0dGUiq4ZQ1A", "--quiet"),
)
"""Options of the partitions. Other releases of a codec's library would write other bytes."""
LOG, WIPED, TORN = "00000000000000000000.log", slice(4096, 8192), 3000
"""Bytes of a damaged copy that are zeros, and the number that another copy has lost at its end."""
SCHEMA = {name: {"type": kind} for name, kind in (("order", "integer"), ("product", "string"), ("cents", "integer"))}
EXPORT = """\
kseg export kafka-logs lake --topic orders --format delta --value-decoder json \\
    --schema orders.json --flatten --drop raw"""
QUERY = '''\
python -c 'import polars as pl; print(pl.scan_delta("lake").sql("""
    select product, count(*) orders, sum(cents) / 100 euros
    from self group by product order by euros desc""").collect())\''''


class Recording(NamedTuple):
    """A picture: its title, the same story in words, and its commands. `disks` makes their files in a directory."""

    title: str
    words: str
    disks: Callable[[Path], None]
    commands: tuple[str, ...]

    def svg(self) -> str:
        """Run the commands; return the picture."""
        with TemporaryDirectory() as work, StrictBroker(set()).running() as broker:
            self.disks(Path(work))
            address = "{}:{}".format(*broker.address)
            runs = []
            for command in self.commands:
                output = run_coloured(command.replace(BOOTSTRAP, address), Path(work), COLUMNS)
                output = output.replace(address, BOOTSTRAP).replace(work, DIRECTORY)
                runs.append(Run(command, RUN_TIME.sub("", output).rstrip("\n")))
        return animated(self.title, self.words, runs)


def intact_disk(work: Path) -> None:
    """Make the log directory `kafka-logs`: a topic of orders, and a group that has read half of them."""
    for number in range(2):
        subprocess.run(
            [PROGRAMS / "kseg", "build", *BUILT, "--to", work / f"kafka-logs/orders-{number}"],
            input="".join(f"{json.dumps(order)}\n" for order in _orders(number)),
            text=True,
            check=True,
        )
    commits = [commit("orders", RECORDS // 2, group="billing", partition=number) for number in range(2)]
    stored = (each._replace(timestamp=START_MS) for each in (classic_group("billing"), *commits))
    write_segment(work / "kafka-logs/__consumer_offsets-0", [NewBatch(tuple(stored))])
    (work / "orders.json").write_text(json.dumps({"type": "object", "properties": SCHEMA}))


def damaged_disks(work: Path) -> None:
    """Make the log directories of two brokers; each has another damage in its copy of `orders-0`."""
    intact_disk(work)
    for broker in ("broker1", "broker2"):
        shutil.copytree(work / "kafka-logs", work / broker)
    log = work / "broker1/orders-0" / LOG
    contents = bytearray(log.read_bytes())
    contents[WIPED] = bytes(WIPED.stop - WIPED.start)
    log.write_bytes(contents)
    (work / "broker1/orders-0/partition.metadata").write_bytes(b"")
    log = work / "broker2/orders-0" / LOG
    log.write_bytes(log.read_bytes()[:-TORN])


def _orders(seed: int) -> list[dict[str, object]]:
    """Return records for `kseg build`; the same seed gives the same records."""
    numbers = random.Random(seed)
    return [
        {
            "key": f"customer-{numbers.randrange(50)}",
            "timestamp": START_MS + number * INTERVAL_MS,
            "value": {
                "order": 2 * number + seed,
                "product": numbers.choice(("tea", "coffee", "cocoa", "mate")),
                "cents": numbers.randrange(250, 2000, 5),
            },
        }
        for number in range(RECORDS)
    ]


WILL_NOT_LOAD = Recording(
    "A partition that won't load",
    "kseg verify reports that a broker doesn't start on a damaged disk, and would then lose most of the records. "
    "kseg salvage combines this copy with another damaged copy. kseg verify reports that a broker would start without "
    "problems.",
    damaged_disks,
    (
        "kseg verify -v broker1/orders-0",
        "kseg salvage broker1/orders-0 broker2/orders-0 --dry-run",
        "kseg salvage broker1/orders-0 broker2/orders-0 --to saved >report.txt",
        "kseg verify -v saved",
    ),
)
DEAD_CLUSTER = Recording(
    "A dead cluster, restored to a new one",
    "kseg ls lists a topic's partitions on the disks of two dead brokers. kseg restore --dry-run prints the plan. "
    "kseg restore sends all records and the group's offsets to a new cluster, and compares the records there.",
    damaged_disks,
    (
        "kseg ls broker1 broker2 --topic orders -q",
        f"kseg restore broker1 broker2 --bootstrap {BOOTSTRAP} --dry-run -q",
        f"kseg restore broker1 broker2 --bootstrap {BOOTSTRAP} --yes",
    ),
)
LAKE = Recording(
    "A topic in a lake",
    "kseg dump prints the first orders of a topic. kseg export writes the topic as a Delta table with typed columns. "
    "A second export finds nothing new. Polars reads the table and sums the orders of each product.",
    intact_disk,
    ("kseg dump kafka-logs/orders-0 -q -o table --limit 3 --fields offset,time,key,value", EXPORT, EXPORT, QUERY),
)
RECORDINGS = {"will-not-load.svg": WILL_NOT_LOAD, "dead-cluster.svg": DEAD_CLUSTER, "lake.svg": LAKE}
"""The recordings by their names in docs/pictures/."""


def will_not_load() -> str:
    """Return the recording of a repair."""
    return WILL_NOT_LOAD.svg()


def dead_cluster() -> str:
    """Return the recording of a restore."""
    return DEAD_CLUSTER.svg()


def lake() -> str:
    """Return the recording of an export and a query."""
    return LAKE.svg()
