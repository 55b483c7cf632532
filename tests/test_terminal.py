"""Output on a terminal: tables that no file's content can break, colours, a pager."""

import shutil
from pathlib import Path

import pytest

from kseg.formats.messages import build_message
from kseg.formats.schemas import message_schema
from tests import golden, run
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.terminal import COLOR, in_terminal, plain

NASTY = '\x1b[2J\x1b]0;owned\x07\x1b[31m[red]mark[/red]\r\n\x9b31m\x7f\u202e\u2028\x00"'
DRAWS = {chr(code) for code in range(0x20)} | {chr(code) for code in range(0x7F, 0xA0)} | set("\u202e\u2028\u200f")
"""Characters that must not come from a file: controls of a terminal, of lines, of the direction of text."""


def is_harmless(shown: str) -> bool:
    """Return True if only styles and line ends control the terminal."""
    return not set(plain(shown)) & (DRAWS - set("\r\n"))


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Return a log with control sequences in keys, values, headers, and the name of its directory."""
    texts = [NASTY.encode(), b"[bold]x[/bold][/]", b"\x1b", b"\x9b31m", b"\xff\xfe\x1b[2J"]
    records = [NewRecord(text, text) for text in texts]
    records += [NewRecord(b"k", b"v", headers=[(NASTY, NASTY.encode()), ("[/red]", None)])]
    name = f"nasty{NASTY.replace(chr(0), '')}-0".replace("/", "")
    log = write_segment(tmp_path / name, [NewBatch(records)])
    assert log.read_bytes().count(NASTY.encode()) == 4
    return tmp_path / name


FIELDS = "topic,file,offset,key,value,headers"


@pytest.mark.parametrize("columns", [60, 100, 300])
def test_table_of_records_is_left_intact(orders: Path, columns: int) -> None:
    shown = in_terminal(
        orders.parent, "dump", orders.name, "-q", "-o", "table", "--fields", "offset,key,value,headers", columns=columns
    )
    assert is_harmless(shown)
    lines = plain(shown).splitlines()
    assert len(lines) == 2 + 6  # names, a rule, and one line per record
    assert [line.split()[0] for line in lines[2:]] == list("012345")
    assert "[bold]x" in lines[3]  # markup is text
    assert "\x1b[31m" not in shown


def test_names_of_files_and_topics_are_escaped_in_tables(orders: Path) -> None:
    shown = in_terminal(orders.parent, "dump", orders.name, "-q", "-o", "table", "--fields", FIELDS, columns=400)
    assert is_harmless(shown)
    assert len(plain(shown).splitlines()) == 1 + 2 + 6
    for form in ("text", "table"):
        assert is_harmless(in_terminal(orders.parent, "ls", orders.name, "-o", form, columns=300))
    assert is_harmless(in_terminal(orders.parent, "ls", "--topic", "none", NASTY.replace("\0", ""), columns=300))


def test_table_that_is_no_terminals_is_escaped_too(orders: Path) -> None:
    shown = run.kseg(["dump", orders.name, "-o", "table", "--fields", FIELDS], orders.parent).stdout.decode()
    assert is_harmless(shown)
    assert "\x1b" not in shown


def test_decoded_values_are_escaped(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(b"k", b'"\\u001b[2J\\u009b31m\\u202e"')])])
    arguments = ("--value-decoder", "json", "--fields", "valueDecoded")
    shown = in_terminal(tmp_path, "dump", "orders-0", "-o", "table", *arguments, columns=200)
    assert is_harmless(shown)
    assert r"\x1b[2J" in shown or r"\u001b[2J" in shown


def _offset_commit() -> NewRecord:
    key = {"group": NASTY, "topic": NASTY, "partition": 0}
    return NewRecord(
        b"\0\1" + build_message(message_schema("OffsetCommitKey"), 0, key),
        b"\0\3" + build_message(message_schema("OffsetCommitValue"), 3, {"offset": 5, "metadata": NASTY}),
    )


def _transaction() -> NewRecord:
    value = {"producerId": 7, "transactionStatus": 1, "transactionPartitions": [{"topic": NASTY, "partitionIds": [0]}]}
    return NewRecord(
        b"\0\0" + build_message(message_schema("TransactionLogKey"), 0, {"transactionalId": NASTY}),
        b"\0\0" + build_message(message_schema("TransactionLogValue"), 0, value),
    )


def _topic() -> NewRecord:
    fields = {"name": NASTY, "topicId": "A" * 22}
    return NewRecord(None, b"\1\2\0" + build_message(message_schema("TopicRecord"), 0, fields))


@pytest.mark.parametrize("form", ["text", "table"])
@pytest.mark.parametrize(
    ("command", "partition", "record"),
    [
        ("groups", "__consumer_offsets-0", _offset_commit()),
        ("txns", "__transaction_state-0", _transaction()),
        ("metadata", "__cluster_metadata-0", _topic()),
    ],
    ids=["groups", "txns", "metadata"],
)
def test_views_of_internal_topics_are_escaped(
    command: str, partition: str, record: NewRecord, form: str, tmp_path: Path
) -> None:
    write_segment(tmp_path / partition, [NewBatch([record])])
    shown = in_terminal(tmp_path, command, partition, "-o", form, columns=300)
    assert "owned" in shown
    assert is_harmless(shown)


# --- colours ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return a partition with segments that retention would delete: their lines are coloured."""
    shutil.copytree(golden.ROOT / "logs/2.8.2/roll-time-0", tmp_path / "roll-time-0")
    return tmp_path


LISTING = ("ls", "roll-time-0", "--by", "segment", "-o", "table", "--now", "1900000000000")


def test_no_color_keeps_colours_away(old: Path) -> None:
    assert COLOR.search(in_terminal(old, *LISTING))
    assert not COLOR.search(in_terminal(old, *LISTING, NO_COLOR="1"))
    assert not COLOR.search(in_terminal(old, *LISTING, "--no-color"))
    assert COLOR.search(in_terminal(old, *LISTING, "--color", NO_COLOR="1"))  # an explicit option comes first


@pytest.mark.parametrize("command", ["doctor", "verify"])
def test_findings_have_no_colours_on_a_terminal_that_knows_none(command: str) -> None:
    damaged = "damaged/210-wiped-batch"
    assert COLOR.search(in_terminal(golden.ROOT, command, damaged))
    assert not COLOR.search(in_terminal(golden.ROOT, command, damaged, TERM="dumb"))
    assert COLOR.search(in_terminal(golden.ROOT, command, damaged, "--color", TERM="dumb"))


def test_no_color_holds_for_explain(old: Path) -> None:
    (log, *_) = sorted((old / "roll-time-0").glob("*.log"))
    assert COLOR.search(in_terminal(old, "explain", str(log), "--batch", "0"))
    assert not COLOR.search(in_terminal(old, "explain", str(log), "--batch", "0", NO_COLOR="1"))


def test_what_is_no_terminal_gets_no_colours_unless_they_are_asked_for(old: Path) -> None:
    assert b"\x1b" not in run.kseg(LISTING, old).stdout
    assert COLOR.search(run.kseg([*LISTING, "--color"], old).stdout.decode())


# --- pager -----------------------------------------------------------------------------------------------------------

INTO_FILE = "sh -c 'cat >paged'"


@pytest.mark.parametrize(
    "arguments", [("dump", "roll-time-0", "-o", "table"), LISTING, ("ls", "roll-time-0")], ids=" ".join
)
def test_tables_go_through_the_pager_on_a_terminal(arguments: tuple[str, ...], old: Path) -> None:
    direct = in_terminal(old, *arguments)
    paged = in_terminal(old, *arguments, KSEG_PAGER=INTO_FILE)
    assert plain((old / "paged").read_text(encoding="utf-8")).splitlines()[1] in plain(direct)
    assert plain(paged) != plain(direct)


def test_pager_is_that_of_the_environment(old: Path) -> None:
    in_terminal(old, *LISTING, PAGER=INTO_FILE)
    assert not (old / "paged").exists()  # KSEG_PAGER comes first, and is cat here
    in_terminal(old, *LISTING, PAGER="cat", KSEG_PAGER=INTO_FILE)
    assert (old / "paged").exists()


def test_pager_that_is_left_early_is_no_error(old: Path) -> None:
    shown = in_terminal(old, "dump", "roll-time-0", "-o", "table", KSEG_PAGER="sh -c 'exec <&-; echo seen'")
    assert "seen" in shown
    assert "Error" not in shown
    assert "Traceback" not in shown


def test_pager_that_is_not_there_is_done_without(old: Path) -> None:
    assert plain(in_terminal(old, *LISTING, KSEG_PAGER="no-such-pager")) == plain(in_terminal(old, *LISTING))


def test_nothing_but_a_terminal_has_a_pager(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KSEG_PAGER", INTO_FILE)
    run.kseg(LISTING, old)
    assert not (old / "paged").exists()
