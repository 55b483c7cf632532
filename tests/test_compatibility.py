"""The recorded public interface is the present one: a part that disappears or changes fails a test by its name."""

import pytest

import kseg
from kseg.cli import COMMANDS
from kseg.doctor.kinds import OWN
from kseg.findings.kinds import FINDINGS
from tests import golden
from tools.generators import public_interface
from tools.generators.public_interface import page
from tools.generators.streams import objects

RECORD = golden.ROOT.parent / "docs" / "reference" / "public-interface.txt"


@pytest.fixture(scope="module")
def recorded() -> list[str]:
    return RECORD.read_text(encoding="utf-8").splitlines()


def test_no_recorded_part_has_changed_or_disappeared(recorded: list[str]) -> None:
    gone = sorted({*recorded} - {*page().splitlines()})
    assert gone == [], (
        "deprecate these parts first (docs/reference/compatibility.md), then run python tools/generate.py"
    )


def test_every_new_part_is_recorded(recorded: list[str]) -> None:
    assert sorted({*page().splitlines()} - {*recorded}) == [], "run python tools/generate.py"


def test_each_part_has_one_line_in_order(recorded: list[str]) -> None:
    assert recorded == sorted({*recorded})


def test_record_has_each_command_finding_type_of_json_and_public_name(recorded: list[str]) -> None:
    heads = {" ".join(line.split()[:count]) for line in recorded for count in (2, 3)}
    wanted = {f"command {name}" for name in COMMANDS} | {f"finding {name}:" for name in FINDINGS | OWN}
    wanted |= {f"json {command} {name}" for command, kinds in objects().items() for name in kinds}
    assert sorted(wanted - heads) == []
    names = {
        line.removeprefix("python ").partition("(")[0].partition(".")[0]
        for line in recorded
        if line.startswith("python ")
    }
    assert {*kseg.__all__} <= names


EXAMPLES = """\
command dump --isolation read_uncommitted|read_committed = read_uncommitted
command dump --header NAME[=VALUE] (repeatable)
command export SOURCE… DEST
environment KSEG_CONFIG
finding torn-tail: warning
json ls segment lastOffset: int?
python Damage.next_offset: int | None
python KsegError.path
python Partition.leader_epochs() -> tuple[tuple[int, int], ...]
python SelectionOptions: from_time
python open_segment(path: str | os.PathLike[str]) -> Segment
spark option failOnDataLoss = true
status 141
status of verify: 1
table records timestamp: timestamp[us, tz=UTC]
table runs offsetRanges: list<item: struct<partition: int32, fromOffset: int64, toOffset: int64>>
"""


def test_lines_show_values_defaults_types_and_signatures(recorded: list[str]) -> None:
    assert sorted({*EXAMPLES.splitlines()} - {*recorded}) == []


def test_part_that_disappears_leaves_the_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {*page().splitlines()}
    monkeypatch.setattr(public_interface, "OWN", dict(list(OWN.items())[1:]))
    monkeypatch.setattr(kseg, "__all__", [name for name in kseg.__all__ if name != "Header"])
    gone = before - {*page().splitlines()}
    assert {line.split()[0] for line in gone} == {"finding", "python"}
    assert "python Header.key: str" in gone
