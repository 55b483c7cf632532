"""One pass over every damaged directory: all commands read it, end as its damage allows, change nothing and agree.

Reports about a certain damage are tested elsewhere. Here each of some 320 directories is copied once, and all
properties that they share are checked on that copy. `make test` takes one directory of each kind of damage.
"""

import json
import shutil
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import kseg
from kseg import kernel as kernels
from kseg.doctor.examination import Trouble
from kseg.log.partition import PartitionLog
from kseg.rewrite.salvage_plan import Salvage
from kseg.verify.verify import verify_partition
from tests import golden, run
from tests.doctor.check_ups import BESIDE, UNNAMED, check_up, expected_findings
from tests.loops import TAKES_ALL, for_each, some_of_each
from tests.rewrite.salvaged import INNER, intact_batches, may_remain, salvage

DAMAGES = json.loads((golden.ROOT / "damaged" / "damage.json").read_text(encoding="utf-8"))
CHOSEN = some_of_each(DAMAGES, lambda damage: damage["damage"], 4)
SAME_STATUS = ("dump LOGS", "dump -o json LOGS", "verify LOGS", "salvage LOGS --dry-run")
"""Commands that judge batches and records: the same damage gives the same status, and so does an export."""
BY_EITHER_KERNEL = (
    "dump -o json LOGS",
    "salvage LOGS --dry-run",
    "verify WHOLE -o json",
    "lookup WHOLE --timestamp max-timestamp",
    "slice WHOLE --to OUT/slice",
)
"""Commands whose answer only depends on the bytes: both kernels give the same answer, and the same copy.

Other dumps of the same logs are compared in tests/kernel/test_same_golden.py.
"""
BY_TWIN = 1 if TAKES_ALL else 4
"""The twin reads every fourth of these directories; with `make test-exhaustive` it reads all."""
OTHERS = (
    "dump LOGS",
    "verify LOGS",
    "dump --like 4.3 --print-data-log LOG",
    "dump --shallow WHOLE",
    "dump -o csv WHOLE",
    "ls WHOLE -o json",
    "explain LOG --batch 0",
    "reindex WHOLE --dry-run",
    "retain WHOLE",
    "txns WHOLE",
    "compact WHOLE --dry-run",
    "doctor WHOLE",
)
"""Other commands that read a partition."""
LOSE_NOTHING = ("duplicated", "reordered")
"""Damages that leave every record: `kseg salvage` ends with 0."""
OF_VERIFY_ALONE = {
    "091-flip-offset",
    "114-last-offset-delta-small",
    "115-last-offset-delta-large",
    "116-last-offset-delta-negative",
    "198-bomb-record",
    "220-offset-lower",
    "223-offset-negative",
    "243-inner-torn",
}
"""Contradictions of headers and records without damage, or missing offsets: only verify judges these.

Salvage, which uses headers, reports some of them too.
"""
ENDS_WELL = {"zero-tail", "offset-lower", "record-key-length-minus-2"}
"""Damage after which a reader of records finds the same records as before."""


@dataclass(frozen=True)
class Case:
    """A damaged directory: its copy, a copy of only its logs, and a description of the damage."""

    damage: dict[str, Any]
    root: Path
    restored: Path

    def __str__(self) -> str:
        return str(self.damage["id"])

    @property
    def whole(self) -> Path:
        """The directory after the damage."""
        return self.root / "whole" / str(self)

    @property
    def logs(self) -> list[Path]:
        """Its logs."""
        return sorted(self.whole.glob("*.log"))

    @property
    def is_log_damaged(self) -> bool:
        """True if a log was damaged, not a file next to it."""
        return str(self.damage["file"]).endswith(".log")

    def kseg(self, line: str) -> run.Run:
        """Run a command line; LOGS, LOG, WHOLE and OUT are replaced by paths."""
        places = {"LOGS": f"logs/{self}", "WHOLE": f"whole/{self}", "LOG": f"whole/{self}/{self.logs[0].name}"}
        words = [places.get(word, word.replace("OUT/", f"{self.root}/out/")) for word in line.split()]
        return run.kseg(words, self.root)

    @cached_property
    def runs(self) -> dict[str, run.Run]:
        """The runs of the commands, by their lines."""
        return {line: self.kseg(line) for line in (*BY_EITHER_KERNEL, *OTHERS)}

    @cached_property
    def dumped(self) -> list[dict[str, Any]]:
        """The objects that a dump of the logs printed."""
        return [json.loads(line) for line in self.runs["dump -o json LOGS"].stdout.splitlines()]

    @cached_property
    def troubles(self) -> list[Trouble]:
        """A doctor's findings about the directory itself."""
        return self.find_troubles()

    def find_troubles(self) -> list[Trouble]:
        """Return a doctor's findings."""
        return [each for each in check_up(self.whole).troubles if each.id not in BESIDE]

    @cached_property
    def sound(self) -> Path:
        """The directory before the damage; a copy of the damaged one if there is none."""
        sound = self.restored / "logs" / self.damage["base"]
        return sound if sound.exists() else Path(shutil.copytree(self.whole, self.root / "copy"))

    @property
    def diff_line(self) -> str:
        """The command line that compares both."""
        return f"diff WHOLE {self.sound} --records --leader {self.sound} -o json"

    @cached_property
    def difference(self) -> run.Run:
        """The run of the comparison."""
        return self.kseg(self.diff_line)

    @cached_property
    def export(self) -> run.Run:
        """The run of an export."""
        return self.kseg("export LOGS OUT/export")

    def salvage(self, *, drop_unreadable: bool) -> tuple[Salvage, Path]:
        """Return the saved data of the directory, and its place."""
        target = self.root / f"saved-{drop_unreadable}"
        return salvage([self.whole], target, drop_unreadable=drop_unreadable), target


def check_sizes_of_batches_and_damages_add_up(case: Case) -> None:
    for path in case.logs:
        position = 0
        with kseg.open_segment(path) as segment:
            for item in segment.scan():
                assert item.position == position
                position += item.size
        assert position == path.stat().st_size
    sizes = [item["size"] for item in case.dumped if item["type"] in ("batch", "damage")]
    assert sum(sizes) == sum(path.stat().st_size for path in case.logs)


def check_commands_end_as_the_damage_allows(case: Case) -> None:
    statuses = {line: ran.status for line, ran in case.runs.items()}
    refused = {line for line, status in statuses.items() if status not in (0, 1)}
    assert refused <= {"slice WHOLE --to OUT/slice"}  # there may be nothing to copy
    dumps = ("dump LOGS", "dump --like 4.3 --print-data-log LOG") if case.is_log_damaged else ()
    assert {line: statuses[line] for line in dumps if statuses[line] not in case.damage["exit"]} == {}


def is_exported(case: Case) -> bool:
    """Return True if an export is tested too, which takes longest: `make test` exports every other directory."""
    return TAKES_ALL or case.damage in CHOSEN[::2]


def check_commands_agree_about_the_damage(case: Case) -> None:
    statuses = {line: case.runs[line].status for line in SAME_STATUS}
    if is_exported(case):
        statuses["export"] = case.export.status
    if case.damage["damage"] in LOSE_NOTHING:
        assert statuses.pop("salvage LOGS --dry-run") == 0
    if str(case) in OF_VERIFY_ALONE:
        assert statuses["verify LOGS"] == 1
    else:
        assert len(set(statuses.values())) == 1, statuses


def check_a_dump_has_a_damage_where_its_status_says_so(case: Case) -> None:
    dump = case.runs["dump -o json LOGS"]
    damages = [item for item in case.dumped if item["type"] == "damage" and item["kind"] != "zero-tail"]
    assert (bool(damages) or b"offsets-fall" in dump.stderr) == (dump.status == 1)


def check_every_intact_batch_is_saved(case: Case) -> None:
    expected = [raw for path in case.logs for raw in intact_batches(path.read_bytes())]
    plan, target = case.salvage(drop_unreadable=False)
    kept = [raw for path in sorted(target.rglob("*.log")) for raw in intact_batches(path.read_bytes())]
    assert sorted(set(kept)) == sorted(set(expected))
    unplaced = sum(extent.batch_count for extent in plan.unplaced)
    assert plan.batch_count + unplaced == len(kept)
    assert plan.batch_count + unplaced + plan.duplicates == len(expected)
    check_only_what_the_guide_names_remains(plan, target, may_remain())


def check_what_is_saved_without_unreadable_batches(case: Case) -> None:
    check_only_what_the_guide_names_remains(*case.salvage(drop_unreadable=True), may_remain() - INNER)


def check_only_what_the_guide_names_remains(plan: Salvage, target: Path, allowed: set[str]) -> None:
    for partition in (path for path in target.iterdir() if path.name != "lost+found"):
        found = {finding.id for finding in verify_partition(PartitionLog(partition)).findings if finding.counts}
        assert found <= allowed
        assert not (plan.is_whole and found)


def check_doctor_names_the_damage_first(case: Case) -> None:
    if not case.troubles:
        assert case.damage["damage"] in UNNAMED
        return
    worst = case.troubles[0]
    assert worst.id in expected_findings(case.damage["damage"]), worst
    of_log = {"bad-crc", "torn-tail", "index-missing", "empty-directory"}  # of existing or missing files next to it
    assert worst.file == case.root / "whole" / case.damage["file"] or worst.id in of_log
    assert worst.command is not None


def check_it_differs_from_its_sound_log(case: Case) -> None:
    there, back = case.difference, case.kseg(f"diff {case.sound} WHOLE --records --leader {case.sound} -o json")
    assert there.status == back.status in (0, 1)
    assert (there.stderr, back.stderr) == (b"", b"")
    done = str(case.damage["damage"])
    if case.sound != case.root / "copy" and done not in ENDS_WELL and not done.startswith("last-offset-delta"):
        assert there.status == 1


OF_LOGS = (
    check_sizes_of_batches_and_damages_add_up,
    check_commands_end_as_the_damage_allows,
    check_commands_agree_about_the_damage,
    check_a_dump_has_a_damage_where_its_status_says_so,
    check_every_intact_batch_is_saved,
    check_what_is_saved_without_unreadable_batches,
)


def checks_of(case: Case) -> Iterator[Callable[[Case], None]]:
    """Yield the checks for a directory; without a log there are fewer."""
    yield check_doctor_names_the_damage_first
    if case.logs:
        yield from OF_LOGS
    if case.is_log_damaged:
        yield check_it_differs_from_its_sound_log


def differences_by_twin(case: Case, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the twin's answers that differ from the compiled kernel's."""
    lines = {line: case.runs[line] for line in BY_EITHER_KERNEL} if case.logs else {}
    if case.is_log_damaged:
        lines[case.diff_line] = case.difference
    written, troubles = files(case.root / "out/slice"), case.troubles
    shutil.rmtree(case.root / "out")
    (case.root / "out").mkdir()
    with monkeypatch.context() as patch:
        patch.setenv(kernels.KERNEL_VARIABLE, "twin")
        yield from (
            f"the twin answers `kseg {line}` differently" for line, ran in lines.items() if case.kseg(line) != ran
        )
        if case.find_troubles() != troubles:
            yield "the twin's doctor finds others"
    if files(case.root / "out/slice") != written:
        yield "the twin's slice is another"


def files(root: Path) -> dict[str, bytes]:
    """Return the bytes of everything below a directory, by name; nothing if there is none."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def contents(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return time of change and bytes of everything below a directory."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def copy_case(damage: dict[str, Any], restored: Path, root: Path) -> Case:
    """Return a copy of a damaged directory, and one of only its logs: faults of other files don't damage logs."""
    case = Case(damage, root, restored)
    shutil.copytree(restored / "damaged" / str(case), case.whole)
    (root / "logs" / str(case)).mkdir(parents=True)
    (root / "out").mkdir()
    for log in case.logs:
        shutil.copy2(log, root / "logs" / str(case))
    return case


@for_each("number,damage", list(enumerate(CHOSEN)), ids=lambda case: case[1]["id"], shards=16)
def test_damaged_directory_is_read_by_all_commands(
    number: int, damage: dict[str, Any], restored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = copy_case(damage, restored, tmp_path)
    inputs = [tmp_path / "whole", tmp_path / "logs"]
    before = [contents(path) for path in inputs]
    wrong = []
    for check in checks_of(case):
        try:
            check(case)
        except Exception:  # noqa: BLE001 - each check that fails is named
            wrong.append(f"{check.__name__}: {traceback.format_exc(limit=-2)}")
    try:
        wrong += differences_by_twin(case, monkeypatch) if number % BY_TWIN == 0 else ()
    except Exception:  # noqa: BLE001 - as above
        wrong.append(f"with the twin: {traceback.format_exc(limit=-2)}")
    if [contents(path) for path in inputs] != before:
        wrong.append("what was read has changed")
    assert not wrong, "\n".join(wrong)
