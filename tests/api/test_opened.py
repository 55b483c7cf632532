"""Values of `kseg.open`: the same facts that the commands print."""

import gzip
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tarfile
from contextlib import chdir
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest

import kseg
from tests import golden, run

ROOT = golden.ROOT.parent
BROKER = golden.ROOT / "logs" / "4.3.1"
SAMPLE = golden.ROOT / "docs" / "test-1-0"
LOG = SAMPLE / "00000000000000203000.log"


def log_directory(path: Path = BROKER, **options: Any) -> kseg.LogDirectory:
    opened = kseg.open(path, **options)
    assert isinstance(opened, kseg.LogDirectory)
    return opened


def partition(path: Path = SAMPLE) -> kseg.Partition:
    opened = kseg.open(path)
    assert isinstance(opened, kseg.Partition)
    return opened


def objects(*arguments: str) -> list[dict[str, Any]]:
    """The lines of JSON that a command prints."""
    return [json.loads(line) for line in run.kseg([*arguments, "-o", "json", "-q"], golden.ROOT).stdout.splitlines()]


# --- what a path is --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (LOG, kseg.Segment),
        (SAMPLE, kseg.Partition),
        (LOG.with_suffix(".index"), None),
        (BROKER, kseg.LogDirectory),
        (BROKER.parent, kseg.LogDirectory),
        (ROOT / "README.md", None),
        (ROOT / "absent", None),
        (ROOT / "docs", None),
    ],
)
def test_a_path_is_opened_as_what_it_is(path: Path, kind: type | None) -> None:
    if kind is None:
        with pytest.raises(kseg.OpenError, match=str(path)):
            kseg.open(path)
    else:
        for form in (path, str(path), os.path.relpath(path)):
            assert type(kseg.open(form)) is kind


def test_a_partition_is_opened_from_within_itself() -> None:
    with chdir(SAMPLE):
        here = kseg.open(".")
        assert isinstance(here, kseg.Partition)
        assert (here.topic, here.partition) == ("test-1", 0)
        assert next(here.records()).offset == 203000


def test_several_paths_are_a_log_directory() -> None:
    both = kseg.open(SAMPLE, BROKER)
    assert isinstance(both, kseg.LogDirectory)
    assert "test-1" in both.topics
    assert "zstd" in both.topics
    assert both.size == log_directory().size + partition().size


def test_topics_and_partitions_are_chosen_as_by_the_commands() -> None:
    assert log_directory(topic="*zstd").topics == ("append-zstd", "zstd")
    assert log_directory(topic=["zstd", "compacted*"]).topics == ("compacted-txn", "zstd")
    assert [each.topic for each in log_directory(partition=1).partitions()] == [
        "__consumer_offsets",
        "__share_group_state",
    ]
    assert len(log_directory(topic="__*", partition=range(5)).partitions()) == 4
    with pytest.raises(kseg.UsageError, match="no such partition"):
        kseg.open(BROKER, topic="absent")


def test_a_log_directory_knows_its_partitions() -> None:
    found = log_directory()
    assert found.paths == (BROKER,)
    assert [each.path.name for each in found.partitions()] == sorted(each["partition"] for each in partitions_by_ls())
    assert found.partition("zstd", 0).path == BROKER / "zstd-0"
    assert [each.topic for each in found.partitions("*zstd")] == ["append-zstd", "zstd"]
    with pytest.raises(kseg.OpenError, match="no partition 7 of the topic 'zstd'"):
        found.partition("zstd", 7)


def partitions_by_ls() -> list[dict[str, Any]]:
    return [{"partition": path.name} for path in BROKER.iterdir() if path.is_dir()]


def test_a_partition_knows_its_offsets_and_segments() -> None:
    own = partition(BROKER / "compacted-txn-0")
    assert (own.topic, own.partition, own.state) == ("compacted-txn", 0, None)
    assert own.base_offsets == (234, 240)
    assert [segment.base_offset for segment in own.segments()] == [234, 240]
    assert (own.log_start_offset(), own.log_end_offset()) == (234, 297)
    assert own.size == sum(segment.size for segment in own.segments())
    assert own.topic_id() is not None
    assert own.leader_epochs()


@pytest.mark.parametrize("content", [None, b"version: 9\n"], ids=["missing", "unreadable"])
def test_an_id_that_a_partition_lost_is_that_of_the_metadata_next_to_it(content: bytes | None, tmp_path: Path) -> None:
    for name in ("zstd-0", "__cluster_metadata-0"):
        shutil.copytree(BROKER / name, tmp_path / name)
    known, lost = partition(BROKER / "zstd-0").topic_id(), tmp_path / "zstd-0" / "partition.metadata"
    lost.unlink()
    if content is not None:
        lost.write_bytes(content)
    assert partition(tmp_path / "zstd-0").topic_id() == known is not None
    with kseg.open_cluster(tmp_path / "zstd-0") as cluster:
        assert cluster.topics["zstd"].topic_id == known


def test_an_archive_is_unpacked_until_it_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, scratch = tmp_path / "support.tar.gz", tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(BROKER, "broker")
    with kseg.open(archive) as opened:
        assert isinstance(opened, kseg.LogDirectory)
        assert opened.topics == log_directory().topics
        assert list(opened.records(topic_records := kseg.Selection(limit=50))) == list(
            log_directory().records(topic_records)
        )
        assert str(archive) in repr(opened)
        assert list(scratch.iterdir())
    assert not list(scratch.iterdir())
    records = kseg.open(f"{archive}/broker/zstd-0").records()
    assert len(list(records)) == len(list(kseg.open(BROKER / "zstd-0").records()))
    del records
    assert not list(scratch.iterdir())
    with pytest.raises(kseg.OpenError):
        kseg.open(f"{archive}/broker/absent-0")
    assert not list(scratch.iterdir())


def test_a_metadata_snapshot_is_opened_as_a_segment() -> None:
    (path, *_) = (golden.ROOT / "logs").glob("*/__cluster_metadata-0/*.checkpoint")
    with kseg.open(path) as snapshot:
        assert isinstance(snapshot, kseg.Segment)
        assert snapshot.base_offset is None
        assert len(list(snapshot.records())) > 0
        assert len(list(snapshot.records(control=True))) == 2  # header and footer


def test_a_compressed_segment_is_opened_as_one(tmp_path: Path) -> None:
    path = tmp_path / f"{LOG.name}.gz"
    path.write_bytes(gzip.compress(LOG.read_bytes()))
    with kseg.open(path) as opened:
        assert isinstance(opened, kseg.Segment)
        assert list(opened.records()) == list(kseg.open(LOG).records())
        assert repr(opened).startswith(f"Segment {path}: ")


def test_of_replicas_the_one_that_ends_last_is_read(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(BROKER / "zstd-0", tmp_path / name / "zstd-0")
    shorter = next((tmp_path / "one" / "zstd-0").glob("*.log"))
    os.truncate(shorter, next(batch.position for batch in kseg.open_segment(shorter).batches() if batch.position))
    both = kseg.open(tmp_path)
    assert isinstance(both, kseg.LogDirectory)
    assert len(both.partitions()) == 2
    assert list(both.records()) == list(kseg.open(BROKER / "zstd-0").records())


# --- what it shows ---------------------------------------------------------------------------------------------------


class _Tags(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, _: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


HOSTILE = "<img src=x onerror=alert(1)>&\x1b[31m\n\u202e"


def test_what_is_opened_shows_itself_as_a_short_table() -> None:
    text = repr(log_directory())
    assert text.splitlines()[0] == f"LogDirectory {BROKER}: 8 partitions of 8 topics, {log_directory().size:,} bytes"
    assert text.splitlines()[1].split() == ["topic", "partition", "segments", "bytes"]
    assert len(text.splitlines()) == 10
    many = repr(log_directory(BROKER.parent)).splitlines()
    assert len(many) == 13
    assert many[-1].endswith(" more")
    assert repr(partition()).splitlines()[2].split() == [
        "00000000000000203000.log",
        "203,000",
        f"{LOG.stat().st_size:,}",
    ]
    assert repr(kseg.open(LOG)) == f"Segment {LOG}: {LOG.stat().st_size:,} bytes"


def test_names_out_of_files_do_no_harm_in_tables(tmp_path: Path) -> None:
    directory = tmp_path / f"{HOSTILE.replace('/', '')}-0"
    shutil.copytree(SAMPLE, directory)
    shown: list[Any] = [kseg.open(tmp_path), kseg.open(directory), kseg.open(directory / LOG.name)]
    os.truncate(directory / LOG.name, 1000)
    shown.append(partition(directory).verify())
    for each in shown:
        assert "\x1b" not in repr(each)
        assert "\u202e" not in repr(each)
        assert len(repr(each).splitlines()) <= 13
        page = _Tags(each._repr_html_())
        assert page.tags <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
        assert "<img src=x onerror=alert(1)>&" in page.text
        assert "\x1b" not in page.text


def test_html_has_what_the_text_has() -> None:
    for each in (log_directory(), partition(), kseg.open(LOG)):
        shown = _Tags(each._repr_html_()).text
        assert all(word in shown for word in repr(each).split())


# --- tables ----------------------------------------------------------------------------------------------------------


def test_tables_of_all_libraries_hold_the_same() -> None:
    opened = kseg.open(BROKER, topic="compacted-txn")
    rows = opened.to_arrow().read_all()
    assert rows.num_rows == len(list(opened.records())) > 0
    frame = opened.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert frame["offset"].tolist() == rows["offset"].to_pylist()
    assert frame["key"].tolist() == rows["key"].to_pylist()
    polar = opened.to_polars()
    assert isinstance(polar, pl.DataFrame)
    assert polar["value"].to_list() == rows["value"].to_pylist()
    (counted,) = duckdb.from_arrow(opened.to_arrow()).aggregate('count(*), max("offset")').fetchall()
    assert counted == (rows.num_rows, max(rows["offset"].to_pylist()))


def test_damage_reaches_whoever_reads_a_table() -> None:
    opened = kseg.open(golden.ROOT / "damaged" / "210-wiped-batch")
    for read in (opened.to_pandas, opened.to_polars, lambda: opened.to_arrow().read_all()):
        with pytest.raises(kseg.DamagedError, match="at position"):
            read()
    with pytest.raises(Exception, match="at position"):
        duckdb.from_arrow(opened.to_arrow()).aggregate("count(*)").fetchall()


def test_decoders_add_columns_and_values(tmp_path: Path) -> None:
    records = kseg.RecordsBuilder()
    for value in (b'{"n": 1}', b"not JSON", None):
        records.append(5, b"\0\0\0\7", value)
    path = tmp_path / "orders-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(records.build().raw)
    opened = kseg.open(path.parent)
    one, two, three = opened.decoded_records(key_decoder="int32", value_decoder="json")
    assert (one.key, one.value, one.value_error, one.offset, one.timestamp) == (7, {"n": 1}, None, 0, 5)
    assert (two.value, three.value, three.value_error) == (b"not JSON", None, None)
    assert two.value_error is not None
    assert two.record.value == b"not JSON"
    assert [each.value for each in opened.decoded_records()] == [b'{"n": 1}', b"not JSON", None]
    with pytest.warns(kseg.KsegWarning, match="1 key or values can't be decoded"):
        table = opened.to_arrow(value_decoder="json", headers=False).read_all()
    assert table["valueDecoded"].to_pylist() == ['{"n":1}', None, None]
    assert "headers" not in table.column_names
    with pytest.raises(kseg.UsageError, match="no such decoder; specify one of string, "):
        opened.decoded_records(value_decoder="cobol")
    with pytest.raises(kseg.UsageError, match="no such decoder; specify one of string, "):
        opened.to_arrow(value_decoder="cobol")


@pytest.mark.parametrize(
    ("table", "library"), [("to_arrow", "pyarrow"), ("to_pandas", "pandas"), ("to_polars", "polars")]
)
def test_a_missing_library_is_named_with_what_installs_it(
    table: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(kseg.UsageError, match=f"{library} is missing; run `pip install"):
        getattr(kseg.open(SAMPLE), table)()


# --- what the commands find out --------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [203000, 203555, 999999])
def test_lookup_answers_as_the_command_does(offset: int) -> None:
    answer = partition().lookup(offset=offset)
    (told,) = objects("lookup", "docs/test-1-0", "--offset", str(offset))
    assert answer.offset == told["offset"]
    assert str(answer.absence or "") == (told.get("absence") or "")
    if answer.record is not None:
        assert answer.record.offset == offset


def test_lookup_takes_times_and_selections() -> None:
    own = partition()
    assert own.lookup(time=1581597478320).offset == own.lookup(time="2020-02-13T12:37:58.320Z").offset == 203001
    assert own.lookup(time="latest").offset == own.log_end_offset()
    found = own.lookup(offset=203500, grep="7$").record
    assert found is not None
    assert found == next(own.records(from_offset=203500, grep="7$"))
    assert repr(own.lookup(offset=203500)) == "Lookup(offset 203500: offset 203500)"
    assert "above the log end offset 209300" in repr(own.lookup(offset=999999))
    with pytest.raises(kseg.UsageError, match="either offset or time"):
        own.lookup()
    with pytest.raises(kseg.UsageError, match="either offset or time"):
        own.lookup(offset=1, time=1)


@pytest.mark.parametrize("path", ["logs/4.3.1", "damaged/210-wiped-batch", "logs/2.3.1-killed", "docs/test-1-0"])
def test_verify_finds_what_the_command_finds(path: str) -> None:
    told = [each for each in objects("verify", path, "-v") if each["type"] == "finding"]
    found = kseg.open(golden.ROOT / path).verify()  # type: ignore[union-attr]
    assert sorted((each.id, str(each.file), each.sentence) for each in found.findings) == sorted(
        (each["id"], str(golden.ROOT / each["file"]), each["sentence"]) for each in told
    )
    assert found.is_well is all(each["severity"] == "note" for each in told)


def test_diff_finds_what_the_command_finds() -> None:
    sides = (golden.ROOT / "damaged" / "210-wiped-batch", golden.ROOT / "logs" / "classes-4.3.1" / "v2-gzip-create")
    (told,) = objects("diff", *map(str, sides), "--leader", str(sides[1]))
    (found,) = partition(sides[0]).diff(sides[1], leader=sides[1])
    assert (str(found.verdict), found.first_difference) == (told["verdict"], told["firstDifference"])
    assert [copy.missing for copy in found.copies] == [copy["missing"] for copy in told["copies"]] == [1, 0]
    assert [each.to_offset for each in found.truncations] == [each["toOffset"] for each in told["truncations"]]
    with pytest.raises(kseg.UsageError, match="at least two"):
        partition(sides[0]).diff()
    with pytest.raises(kseg.OpenError):
        partition(sides[0]).diff("nowhere")


def test_salvage_writes_what_the_command_writes(tmp_path: Path) -> None:
    source = golden.ROOT / "damaged" / "210-wiped-batch"
    (done,) = partition(source).salvage(tmp_path / "saved")
    run.kseg(["salvage", str(source), "--to", str(tmp_path / "by-command")], golden.ROOT)
    assert contents(tmp_path / "saved") == contents(tmp_path / "by-command") != {}
    assert not done.is_whole
    assert done.plan.holes
    assert {each.name for each in done.written.files} == set(contents(tmp_path / "saved"))
    assert len(list(partition(tmp_path / "saved" / source.name).records())) > 0
    (planned,) = partition(source).salvage(None)
    assert planned.plan.batch_count == done.plan.batch_count
    with pytest.raises(kseg.UsageError, match="already exists"):
        partition(source).salvage(tmp_path / "saved")
    with pytest.raises(kseg.UsageError, match="is inside"):
        partition(source).salvage(source / "saved")


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_groups_transactions_and_metadata_are_those_of_the_commands() -> None:
    """In the order of names and logs; the commands have the worst first."""
    opened = log_directory()
    told = [each["group"] for each in objects("groups", "logs/4.3.1", "--show", "groups")]
    assert [each.group for each in opened.groups().groups] == sorted(told) != []
    metadata = opened.metadata()
    told = [each["topic"] for each in objects("metadata", "logs/4.3.1", "--show", "topics")]
    assert [topic.name for topic in metadata.topics] == told != []
    assert len(opened.metadata(at=520).topics) < len(told)
    rows = objects("txns", "logs/4.3.1")
    found = [each.transaction.producer_id for each in opened.transactions()]
    assert sorted(found) == sorted(each["producerId"] for each in rows if each["type"] == "transaction") != []
    ids = [each.transaction.transactional_id for each in opened.transactional_ids()]
    told = [each["transactionalId"] for each in rows if each["type"] == "coordinatorTransaction"]
    assert ids == sorted(told) != []


def test_groups_are_those_with_commits_for_chosen_topics() -> None:
    view = log_directory(topic=["zstd"]).groups()
    assert all(commit.topic == "zstd" for group in view.groups for commit in group.commits)


def test_what_is_not_here_can_not_be_opened() -> None:
    without = log_directory(SAMPLE.parent)
    for ask in (without.groups, without.metadata):
        with pytest.raises(kseg.OpenError):
            ask()


# --- the package -----------------------------------------------------------------------------------------------------


def test_values_can_be_pickled_where_they_are_values() -> None:
    own = partition(BROKER / "compacted-txn-0")
    for value in (own.verify(), next(own.records()), next(own.batches()), list(own.decoded_records(limit=2))):
        assert repr(pickle.loads(pickle.dumps(value))) == repr(value)


def test_opening_imports_no_library_of_tables() -> None:
    code = (
        f"import sys, kseg; kseg.open({str(BROKER)!r}); next(kseg.open({str(SAMPLE)!r}).records());"
        " print({'pyarrow', 'pandas', 'polars', 'construct', 'click'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout == "set()\n"


def test_arrow_tables_import_no_pandas() -> None:
    code = f"import sys, kseg; kseg.open({str(BROKER)!r}).to_arrow().read_all(); print('pandas' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout == "False\n"


TYPED = """
from collections.abc import Iterator
import kseg

opened = kseg.open("orders-0", topic=["orders"], partition=3)
records: Iterator[kseg.Record] = opened.records(from_time="-1h", limit=5, header=["trace"])
decoded: Iterator[kseg.DecodedRecord] = opened.decoded_records(value_decoder="json")
batches: Iterator[kseg.Batch] = opened.batches(kseg.Selection(limit=3), on_damage="skip")
if isinstance(opened, kseg.Partition):
    answer: kseg.Lookup = opened.lookup(offset=5)
    found: kseg.Verification = opened.verify()
    saved: tuple[kseg.Salvaged, ...] = opened.salvage("saved")
elif isinstance(opened, kseg.LogDirectory):
    groups: kseg.GroupsView = opened.groups(at="2026-11-01")
    one: kseg.Partition = opened.partition("orders", 0)
    metadata: kseg.ClusterMetadata = opened.metadata()
else:
    segment: kseg.Segment = opened
"""
WRONG = (
    "records(from_ofset=3)",
    'records(limit="3")',
    'to_arrow(on_damage="ignore")',
    'decoded_records(value_decode="json")',
)


def test_calls_are_typed(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(TYPED)
    (tmp_path / "wrong.py").write_text("import kseg\n" + "".join(f"kseg.open('x').{each}\n" for each in WRONG))
    # As `make lint` runs it, whose cache is used: to check the package again takes most of the time.
    command = [sys.executable, "-m", "mypy", "--no-pretty", str(tmp_path / "right.py"), str(tmp_path / "wrong.py")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    errors = re.findall(r"wrong\.py:(\d+): error", ran.stdout)
    assert set(errors) == {str(number) for number in range(2, 2 + len(WRONG))}, ran.stdout
    assert "right.py" not in ran.stdout
