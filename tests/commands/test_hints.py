"""Commands in kseg's findings: kseg accepts each as printed."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from kseg.doctor.kinds import KINDS
from kseg.findings.kinds import ALL_FINDINGS
from tests import golden, run

HINTS = sorted(
    {
        line
        for kind in (*KINDS.values(), *ALL_FINDINGS.values())
        for text in (kind.meaning, kind.risk, kind.next_step)
        for line in re.findall(r"`(kseg [^`]*)`", text)
    }
)
PLACES = {"PATH": "disk", "DISK": "disk", "BUCKET": "bucket", "DIR": "new", "ID": "torn-tail"}
"""Replacements for words in capitals."""
NEEDS_PATH = {
    "diff": ["disk", "disk"],
    "export": ["disk", "new"],
    "rebuild-metadata": ["disk", "--node-id", "7", "--to", "new"],
    "serve": ["disk", "--", "true"],
}
"""Commands whose hints have only their names."""
STATUSES = {"rebuild-metadata": (0, 1, 2)}
"""Accepted exit statuses: damage and up-to-date metadata end the command."""


@pytest.mark.parametrize("hint", HINTS)
def test_each_command_of_a_finding_is_taken(hint: str, tmp_path: Path) -> None:
    shutil.copytree(golden.ROOT / "logs/4.4.0-made", tmp_path / "disk")
    shutil.copytree(golden.ROOT / "logs/4.4.0-made/__consumer_offsets-0", tmp_path / "bucket/__consumer_offsets-0")
    _, command, *words = (PLACES.get(word, word) for word in shlex.split(hint))
    places = [] if set(words) & set(PLACES.values()) else NEEDS_PATH.get(command, ["disk"])
    if command in ("salvage", "reindex") and not words:
        places = [*places, "--dry-run"]
    ran = run.kseg([command, *words, *places], tmp_path)
    assert ran.status in STATUSES.get(command, (0, 1)), ran.stderr


def test_empty_files_are_said_to_be_empty_and_not_sent_round_in_circles(tmp_path: Path) -> None:
    log = tmp_path / f"{0:020}.log"
    log.touch()
    ran = run.kseg(["explain", log.name], tmp_path)
    assert (ran.status, ran.stderr) == (0, f"kseg: {log.name}: the file is empty\n".encode())
    (tmp_path / ".lock").touch()
    for command in ("explain", "dump"):
        said = run.kseg([command, ".lock"], tmp_path).stderr
        assert b"it is empty, and only locks the directory" in said
        assert b"kseg dump" not in said
