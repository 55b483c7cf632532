"""A running broker, with the output of Kafka's own tools for it and of kseg for its disks."""

import json
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from tests import run
from tests.log.real_broker import PATIENCE, Broker

TOOLS = "org.apache.kafka.tools"


class OneBroker(NamedTuple):
    """A running broker with its disks.

    `hour_ago`: an hour before its start in milliseconds; `running`: processes to end. tools: classes of Kafka's tools,
    None if the broker's release has its own.
    """

    broker: Broker
    disks: tuple[Path, ...]
    hour_ago: int
    running: ExitStack
    tools: Any = None

    @property
    def server(self) -> str:
        return f"127.0.0.1:{self.broker.port}"

    def tool(self, name: str, *arguments: str) -> list[str]:
        """Return the output lines of one of Kafka's tools."""
        classes = self.tools or self.broker.kafka
        command = classes.command(f"{TOOLS}.{name}", "--bootstrap-server", self.server, *arguments)
        ran = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE * 3)
        assert ran.returncode == 0, ran.stderr.decode()[-2000:]
        return ran.stdout.decode().splitlines()

    def table(self, name: str, *arguments: str) -> list[dict[str, str]]:
        """Return the rows of tables: lines of titles follow empty ones."""
        rows: list[dict[str, str]] = []
        titles: list[str] = []
        for line in self.tool(name, *arguments):
            cells = line.split()
            if not cells or "no active members" in line:
                titles = []
            elif not titles:
                titles = cells
            else:
                rows.append(dict(zip(titles, cells, strict=False)))
        return rows

    def kseg(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the objects that kseg prints for both disks, without their totals."""
        command, *options = arguments
        ran = run.kseg([command, *map(str, self.disks), *options, "-o", "json"], self.broker.work)
        assert ran.status in (0, 1), ran.stderr
        return [row for row in map(json.loads, ran.stdout.splitlines()) if row.get("type") != "total"]
