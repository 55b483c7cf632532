"""Keys and values as text or JSON, in columns next to the bytes; undecodable ones are counted."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kseg.export.settings import ColumnDecoding
from tests import run
from tests.export import exports
from tests.log_files import NewBatch, NewRecord, write_segment

TEXT = b'{"b": 1, "a": [null]}'


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a partition with values that are JSON, null, and neither."""
    records = [
        NewRecord(b"k", TEXT),
        NewRecord(b"k", None),
        NewRecord(None, b"not json"),
        NewRecord(b"l", b'"\\ud800"'),
    ]
    write_segment(tmp_path / "orders-0", [NewBatch(records)])
    return tmp_path / "orders-0"


def test_decoded_columns_stand_beside_the_bytes(source: Path, tmp_path: Path) -> None:
    report = exports.export([source], tmp_path / "out", decode=ColumnDecoding(key="string", value="json"))
    table = pq.read_table(tmp_path / "out")
    assert table.column("valueDecoded").to_pylist() == ['{"b":1,"a":[null]}', None, None, None]
    assert table.column("keyDecoded").to_pylist() == ["k", "k", None, "l"]
    assert table.column("value").to_pylist()[:3] == [TEXT, None, b"not json"]
    assert (report.partitions[0].undecoded, report.partitions[0].records_out) == (2, 4)
    assert report.is_whole


def test_the_command_decodes_and_goes_on_only_with_the_same_decoder(source: Path, tmp_path: Path) -> None:
    command = ["export", str(source), str(tmp_path / "out"), "-o", "json", "--no-headers", "--latest-per-key"]
    ran = run.kseg([*command, "--value-decoder", "json", "--max-undecoded", "2"], tmp_path)
    assert (ran.status, ran.stderr) == (0, b"")
    assert json.loads(ran.stdout.splitlines()[0])["undecoded"] == 2
    assert pq.read_table(tmp_path / "out").column("valueDecoded").to_pylist() == [None, None]
    assert b"the export was made with --value-decoder json; specify the same" in run.kseg(command, tmp_path).stderr


@pytest.mark.parametrize(
    ("decoder", "wanted"),
    [
        ("string", 'say "hi"'),
        ("org.apache.kafka.common.serialization.StringDeserializer", 'say "hi"'),
        ("hex", "7361792022686922"),
        ("base64", "c2F5ICJoaSI="),
        ("auto", '"say \\"hi\\""'),
        ("int64", "8314059566025828642"),
    ],
)
def test_what_is_text_stands_as_it_is_and_the_rest_as_json(decoder: str, wanted: str, tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(None, b'say "hi"')])])
    ran = run.kseg(["export", "orders-0", "out", "--value-decoder", decoder], tmp_path)
    assert (ran.status, ran.stderr) == (0, b"")
    assert pq.read_table(tmp_path / "out").column("valueDecoded").to_pylist() == [wanted]


@pytest.mark.parametrize("part", ["key", "value"])
@pytest.mark.parametrize("decoder", ["", "nothing", "avro"])
def test_a_wrong_decoder_is_refused_before_anything_is_written(
    part: str, decoder: str, source: Path, tmp_path: Path
) -> None:
    ran = run.kseg(["export", str(source), str(tmp_path / "out"), f"--{part}-decoder", decoder], tmp_path)
    assert (ran.status, ran.stdout) == (2, b"")
    assert ran.stderr.startswith(f"kseg: --{part}-decoder {decoder}".encode())
    assert not (tmp_path / "out").exists()
