"""Amount of messages: `-q`, `-v`, and errors in colour on terminals."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from kseg.cli import COMMANDS
from tests import golden, run
from tests.loops import for_each
from tests.terminal import COLOR, in_terminal

LOG = "docs/test-1-0/00000000000000203000.log"
WHOLE = "docs/test-1-0"
DAMAGED = "damaged/066-codec-5"
TOOK = re.compile(rb"kseg: [0-9.]+ s, [0-9.]+ s CPU, [0-9]+ MiB peak memory(, [0-9]+ bytes read)?\n")


def kseg(line: str) -> run.Run:
    return run.kseg(line.split(), golden.ROOT)


@for_each(
    "line",
    [
        f"dump {LOG} --shallow",
        f"ls {WHOLE}",
        f"lookup {WHOLE} --offset 203500",
        f"verify {WHOLE}",
        f"salvage {WHOLE} --dry-run",
        f"reindex {WHOLE} --dry-run",
        f"carve {LOG} --dry-run",
        f"explain {LOG} --batch 0",
        f"retain {WHOLE}",
        f"diff {WHOLE} {DAMAGED}",
        "where --group g --partitions 3",
        "groups logs/4.3.1",
        "txns logs/2.3.1",
        "metadata logs/4.3.1",
    ],
)
def test_verbose_says_what_the_run_took_and_changes_nothing_else(line: str) -> None:
    plain, verbose = kseg(line), kseg(f"{line} -v")
    assert TOOK.fullmatch(verbose.stderr.removeprefix(plain.stderr))
    if not line.startswith("verify"):
        assert (verbose.status, verbose.stdout) == (plain.status, plain.stdout)


@pytest.mark.parametrize(
    "line",
    [
        f"dump {LOG}",
        f"carve {LOG} --dry-run",
        f"verify {DAMAGED}",
        f"diff {WHOLE} {DAMAGED}",
        "protocol protocol/4.3.1/clients.pcap",
        f"ls {WHOLE}",
    ],
)
def test_quiet_json_has_no_summary(line: str) -> None:
    loud, quiet = kseg(f"{line} -o json"), kseg(f"{line} -o json -q")
    assert json.loads(loud.stdout.splitlines()[-1])["type"] in ("summary", "total")
    assert quiet.stdout.splitlines() == loud.stdout.splitlines()[:-1]
    assert quiet.status == loud.status


def test_quiet_sums_nothing_up() -> None:
    loud, quiet = (kseg(f"retain logs/2.8.2 --now 2026-12-01 -o json{option}") for option in ("", " -q"))
    kinds = {json.loads(line)["type"] for line in loud.stdout.splitlines()}
    assert kinds == {"segment", "topic", "directory", "total"}
    assert {json.loads(line)["type"] for line in quiet.stdout.splitlines()} == {"segment"}


def test_quiet_has_nothing_to_say_when_all_is_well(tmp_path: Path) -> None:
    for line in (f"verify {WHOLE}", f"salvage {WHOLE} --to {tmp_path}/saved", f"reindex {WHOLE} --to {tmp_path}/new"):
        assert kseg(f"{line} -q") == (0, b"", b"")
    assert (tmp_path / "saved" / "test-1-0").is_dir()


def test_quiet_still_says_what_is_lost() -> None:
    ran = kseg("salvage -q --dry-run damaged/210-wiped-batch docs/test-1-0 -o json")
    assert [json.loads(line)["name"] for line in ran.stdout.splitlines()] != []
    assert ran.status == 1


@pytest.mark.parametrize(
    "line",
    [
        "dump b1 b2 --topic test-1 --tail 3",
        "dump b1 b2 --topic test-1 --tail 3 -o json",
        "dump b1 b2 --topic test-1 --tail 3 -o kcat",
        "ls b1 b2",
        "lookup b1 b2 --topic test-1 --offset 203500",
        "doctor b1 b2 --topic test-1",
        "verify b1 b2 --topic test-1",
        "salvage b1 b2 --dry-run",
        "salvage b1 b2 --to saved",
        "diff b1 b2",
        "report b1 b2 --topic test-1 --to report.html",
        "get b1 b2 --topic test-1 --offset 203500",
        "reindex b1 b2 --dry-run",
        "retain b1 b2",
        "compact b1 b2 --topic __consumer_offsets --dry-run",
        "groups b1 b2",
        "txns b1 b2",
        "query 'SELECT count(*) FROM records' b1 b2",
        "export b1 b2 exported",
        "slice b1 b2 --topic test-1 --to sliced",
        "serve b1 b2 -q --no-internal -- true",
    ],
)
def test_quiet_says_nothing_of_copies(line: str, tmp_path: Path) -> None:
    for node_id in (1, 2):
        disk = tmp_path / f"b{node_id}"
        shutil.copytree(golden.ROOT / WHOLE, disk / "test-1-0")
        (disk / "meta.properties").write_text(f"version=1\nnode.id={node_id}\ncluster.id=x\n")
        for topic in ("__consumer_offsets", "__transaction_state"):
            shutil.copytree(golden.ROOT / "logs/4.4.0-made" / f"{topic}-0", disk / f"{topic}-0")
    quiet = line if " -q " in line else f"{line} -q"
    ran = run.kseg(shlex.split(quiet), tmp_path)
    assert ran.stderr == b""
    assert ran.status < 2


@for_each("command", COMMANDS)
def test_quiet_and_colour_are_known_to_all(command: str) -> None:
    told = kseg(f"{command} -q -v --no-color --nothing-like-this")
    assert b"no such option --nothing-like-this" in told.stderr


@pytest.mark.parametrize(
    ("options", "environment", "is_red"),
    [
        ((), {}, True),
        (("--no-color",), {}, False),
        ((), {"NO_COLOR": "1"}, False),
        (("--color",), {"NO_COLOR": "1"}, True),
        ((), {"TERM": "dumb"}, False),
    ],
)
def test_errors_are_red_on_a_terminal(
    options: tuple[str, ...], environment: dict[str, str], is_red: bool, tmp_path: Path
) -> None:
    shown = in_terminal(tmp_path, "slice", "absent\x1b[32m", "--to", "new", *options, **environment)
    assert bool(COLOR.search(shown)) == is_red
    assert "\x1b[32m" not in shown
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown).startswith("kseg: absent")
