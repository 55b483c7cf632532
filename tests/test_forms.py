"""A form of output is one class and one row: every command that prints objects then has it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import golden

DISK = golden.ROOT / "logs" / "2.4.1"
# A fourth form for programs: the names of an object's members, after a word that nothing else prints.
PROGRAM = """
from kseg.output import forms
from kseg.output.streams import write_line

class NamesForm(forms.Form):
    name = "names"
    has_objects = True

    def write_rows(self, section, rows):
        for row in rows:
            self.write_object(section.as_object(row))

    def write_object(self, members):
        write_line(f"names: {' '.join(members)}")

forms.FORMS["names"] = forms.OBJECT_FORMS["names"] = NamesForm
from kseg.cli import main
"""


@pytest.mark.parametrize(
    "command",
    [
        ["ls", str(DISK)],
        ["txns", str(DISK)],
        ["diff", str(DISK), str(DISK)],
        ["query", "select 1 as one", str(DISK / "zstd-0")],
        ["verify", str(DISK)],
        ["doctor", str(DISK)],
        ["salvage", str(DISK), "--dry-run"],
        ["lookup", str(DISK / "zstd-0"), "--offset", "340"],
        ["where", "--key", "a", "--partitions", "3"],
    ],
    ids=lambda command: str(command[0]),
)
def test_a_new_form_is_there_for_each_command_that_prints_objects(command: list[str], tmp_path: Path) -> None:
    program = f"{PROGRAM}main({[*command, '-o', 'names']})"
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=False)
    lines = ran.stdout.decode().splitlines()
    assert lines, ran.stderr
    assert {line.partition(" ")[0] for line in lines} == {"names:"}
