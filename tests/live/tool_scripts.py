"""Kafka's tools as the scripts of its bin directory, for shells: `kafka-topics.sh` and others."""

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.log.real_broker import PATIENCE, Broker

MAIN_CLASSES = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
}
"""Of 4.3."""


class ToolScripts:
    """A directory with the scripts of a broker's release, for its address."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._directory = broker.work / "bin"
        self._directory.mkdir(exist_ok=True)
        self.server = f"127.0.0.1:{broker.port}"
        for name, main_class in MAIN_CLASSES.items():
            command = shlex.join(broker.kafka.command(main_class, options=[broker.tools.QUIET]))
            path = self._directory / f"{name}.sh"
            path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            path.chmod(0o755)

    def run(self, name: str, *arguments: str) -> str:
        """What a tool prints."""
        return self._printed([str(self._directory / f"{name}.sh"), "--bootstrap-server", self.server, *arguments])

    def run_script(self, script: Path) -> str:
        """What a shell script prints that stops where a line fails."""
        return self._printed(["sh", "-e", str(script)])

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Waits for something that the tools see."""
        self._broker.tools.wait_until(condition, PATIENCE, "what the tools should see hasn't come")

    def _printed(self, command: list[str]) -> str:
        environment = {**os.environ, "PATH": f"{self._directory}{os.pathsep}{os.environ['PATH']}"}
        ran = subprocess.run(command, capture_output=True, check=False, env=environment, timeout=PATIENCE * 10)
        assert ran.returncode == 0, (ran.stdout + ran.stderr).decode()[-3000:]
        return ran.stdout.decode()
