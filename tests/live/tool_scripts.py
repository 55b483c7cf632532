"""Kafka's tools under the names of its scripts, for shells: `kafka-topics.sh` and others."""

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.log.real_broker import PATIENCE, Broker

MAIN_CLASSES = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
}
"""The tools' classes in 4.3."""


class ToolScripts:
    """A directory with the scripts of a broker's release, for its address."""

    def __init__(self, broker: Broker, classes: Any = None) -> None:
        """Write the scripts. classes: the tools', None if the broker's release has its own."""
        self._broker = broker
        self._directory = broker.work / "bin"
        self._directory.mkdir(exist_ok=True)
        self.server = f"127.0.0.1:{broker.port}"
        for name, main_class in MAIN_CLASSES.items():
            command = shlex.join((classes or broker.kafka).command(main_class, options=[broker.tools.QUIET]))
            path = self._directory / f"{name}.sh"
            path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            path.chmod(0o755)

    def run(self, name: str, *arguments: str) -> str:
        """Return a tool's output."""
        return self._print([str(self._directory / f"{name}.sh"), "--bootstrap-server", self.server, *arguments])

    def run_line(self, line: str) -> str:
        """Return the output of a hint's command, with the broker's address."""
        for placeholder in ("localhost:9092", "HOST:9092"):
            line = line.replace(placeholder, self.server)
        return self._print(["sh", "-ec", line])

    def run_script(self, script: Path) -> str:
        """Return the output of a shell script that stops at a failing line."""
        return self._print(["sh", "-e", str(script)])

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition that the tools can see."""
        self._broker.tools.wait_until(condition, PATIENCE, "what the tools should see hasn't come")

    def _print(self, command: list[str]) -> str:
        environment = {**os.environ, "PATH": f"{self._directory}{os.pathsep}{os.environ['PATH']}"}
        ran = subprocess.run(command, capture_output=True, check=False, env=environment, timeout=PATIENCE * 10)
        assert ran.returncode == 0, (ran.stdout + ran.stderr).decode()[-3000:]
        return ran.stdout.decode()
