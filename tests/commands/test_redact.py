"""`--redact` on dump, lookup, protocol, build and export: equal substitutes everywhere, original content nowhere."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kseg.formats.codes import Codec
from kseg.redaction import Redaction, Redactor
from kseg.writer.batches import RecordsBuilder
from tests import run
from tests.loops import for_each
from tests.protocol.packets import frame_message, request

SECRETS = (b"alice", b"bob", b"salary", b"Berlin")
KEY = ["--redact-key", "a key of our own"]
ALL = ["--redact", "keys", "--redact", "values", "--redact", "headers", *KEY]
RECORDS: list[tuple[bytes | None, bytes | None]] = [
    (b"alice", b'{"salary": 1000}'),
    (b"bob", None),
    (None, b"\x00\xffalice"),
    (b"", b""),
    (b"alice", "Zürich und Berlin".encode()),
]


def redactor() -> Redactor:
    redaction = Redaction.of(("keys",), KEY[1])
    assert redaction is not None
    return redaction.redactor()


def write(directory: Path, magic: int = 2, codec: Codec = Codec.NONE) -> Path:
    """Write `t-0` of two batches with headers, as far as the format has them."""
    (directory / "t-0").mkdir()
    log = directory / "t-0" / f"{0:020}.log"
    for base_offset in (0, len(RECORDS)):
        builder = RecordsBuilder(base_offset, magic=magic, codec=codec)
        for key, value in RECORDS:
            headers = () if magic < 2 else (("city", b"Berlin"), ("none", None), ("empty", b""))
            builder.append(-1 if magic == 0 else 1000, key, value, headers)
        with log.open("ab") as file:
            file.write(builder.build().raw)
    return log


def kseg(directory: Path, *arguments: str) -> run.Run:
    return run.kseg(arguments, directory)


def objects(directory: Path, *arguments: str) -> list[dict[str, object]]:
    ran = kseg(directory, "dump", "-o", "json", "--only", "records", *arguments)
    return [json.loads(line) for line in ran.stdout.splitlines()]


FORMATS = [(magic, codec) for magic in (0, 1, 2) for codec in Codec if magic == 2 or codec != Codec.ZSTD]


@for_each("magic, codec", FORMATS)
@pytest.mark.parametrize(
    "form",
    [
        ["--print-data-log"],
        ["-o", "json"],
        ["-o", "csv"],
        ["-o", "table"],
        ["--template", "{offset} {key} {value} {headers}"],
        ["--like", "2.8", "--print-data-log", "--deep-iteration", "--files"],
        ["--like", "0.10.0", "--print-data-log", "--deep-iteration", "--files"],
    ],
    ids=" ".join,
)
def test_no_form_of_dump_shows_what_was_there(form: list[str], magic: int, codec: Codec, tmp_path: Path) -> None:
    log = write(tmp_path, magic, codec)
    plain = kseg(tmp_path, "dump", *form, str(log)).stdout
    ran = kseg(tmp_path, "dump", *ALL, *form, str(log))
    assert b"alice" in plain
    assert (ran.status, [word for word in SECRETS if word in ran.stdout]) == (0, [])
    assert plain.count(b"\n") == ran.stdout.count(b"\n")
    stands_for = redactor().replace(b"alice")
    assert stands_for is not None
    assert plain.count(b" alice ") + plain.count(b'"alice"') <= ran.stdout.count(stands_for)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize(("part", "member"), [("keys", "key"), ("values", "value"), ("headers", "headers")])
def test_only_what_is_asked_for_is_redacted(part: str, member: str, codec: Codec, tmp_path: Path) -> None:
    log = str(write(tmp_path, codec=codec))
    for before, after in zip(objects(tmp_path, log), objects(tmp_path, log, "--redact", part), strict=True):
        shown = {member, f"{member}Base64"}
        assert {name: before[name] for name in before if name not in shown} == {
            name: after[name] for name in after if name not in shown
        }
        is_same = all(before.get(name) == after.get(name) for name in shown)
        assert is_same == all(before.get(name) in (None, "") for name in shown)


@pytest.mark.parametrize("codec", list(Codec))
def test_dump_build_and_export_agree(codec: Codec, tmp_path: Path) -> None:
    log = str(write(tmp_path, codec=codec))
    shown = [(each.get("key"), each.get("value"), each["headers"]) for each in objects(tmp_path, log, *ALL)]
    (tmp_path / "lines").write_bytes(kseg(tmp_path, "dump", "-o", "json", "-q", log).stdout)
    assert kseg(tmp_path, "build", "lines", "--to", "built/t-0", *ALL).status == 0
    built = [
        (each.get("key"), each.get("value"), each["headers"]) for each in objects(tmp_path, f"built/t-0/{0:020}.log")
    ]
    assert built == shown
    assert kseg(tmp_path, "verify", "built/t-0").status == 0
    assert kseg(tmp_path, "export", "t-0", "exported", *ALL).status == 0
    (path,) = (tmp_path / "exported").glob("topic=*/*.parquet")
    table = pq.ParquetFile(path).read()
    replace = redactor().replace
    assert table.column("key").to_pylist() == [replace(key) for key, _ in RECORDS] * 2
    assert table.column("value").to_pylist() == [replace(value) for _, value in RECORDS] * 2
    city = {"key": "city", "value": replace(b"Berlin")}
    assert table.column("headers").to_pylist()[0] == [
        city,
        {"key": "none", "value": None},
        {"key": "empty", "value": b""},
    ]


def test_records_are_selected_by_what_was_there(tmp_path: Path) -> None:
    log = str(write(tmp_path))
    assert [each["offset"] for each in objects(tmp_path, log, "--key", "alice", *ALL)] == [0, 4, 5, 9]
    assert [each["offset"] for each in objects(tmp_path, log, "--grep", "salary", *ALL)] == [0, 5]


def test_what_is_not_redacted_can_be_decoded(tmp_path: Path) -> None:
    log = str(write(tmp_path))
    found = objects(tmp_path, log, "--redact", "values", "--key-decoder", "hex", "--fields", "key")
    assert found[0]["key"] in (b"alice".hex(), "alice")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--redact", "values", "--value-decoder", "json"],
        ["--redact", "keys", "--key-decoder", "string"],
        ["--redact", "keys", "--value-decoder-class", "StringDecoder"],
        ["--redact", "keys", "--offsets-decoder"],
        ["--redact", "headers", "--header", "city"],
    ],
)
def test_what_is_redacted_is_not_read_otherwise(arguments: list[str], tmp_path: Path) -> None:
    ran = kseg(tmp_path, "dump", str(write(tmp_path)), *arguments)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)


def test_a_key_that_is_not_given_is_another_each_time(tmp_path: Path) -> None:
    log = str(write(tmp_path))
    one, other = (objects(tmp_path, log, "--redact", "values") for _ in range(2))
    assert one != other


def test_the_environment_may_have_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = str(write(tmp_path))
    given = objects(tmp_path, log, *ALL)
    monkeypatch.setenv("KSEG_REDACT_KEY", KEY[1])
    assert objects(tmp_path, log, *ALL[: -len(KEY)]) == given


def test_an_export_goes_on_with_its_own_key_alone_and_keeps_none(tmp_path: Path) -> None:
    write(tmp_path)
    assert kseg(tmp_path, "export", "t-0", "exported", *ALL).status == 0
    assert kseg(tmp_path, "export", "t-0", "exported", *ALL).status == 0
    for other in ([*ALL[:-1], "another key"], ALL[: -len(KEY)], []):
        ran = kseg(tmp_path, "export", "t-0", "exported", *other)
        assert (ran.status, b"made with other values of --redact and --redact-key;" in ran.stderr) == (2, True)
    derived = Redaction.of(("keys",), KEY[1])
    assert derived is not None
    for path in (each for each in (tmp_path / "exported").rglob("*") if each.is_file()):
        content = path.read_bytes()
        assert not any(
            secret in content for secret in (*SECRETS, KEY[1].encode(), derived.key, derived.key.hex().encode())
        )


def test_latest_per_key_is_reported_before_keys_are_redacted(tmp_path: Path) -> None:
    write(tmp_path)
    assert kseg(tmp_path, "export", "t-0", "exported", "--latest-per-key", "--redact", "keys").status == 0
    (path,) = (tmp_path / "exported").glob("topic=*/*.parquet")
    assert pq.ParquetFile(path).read().column("offset").to_pylist() == [2, 7, 8, 9]


def test_control_records_of_a_built_log_stay(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("alice\nbob\n")
    options = ["--input-format", "text", "--producer-id", "7", "--transaction", "commit"]
    assert kseg(tmp_path, "build", "lines", "--to", "first/t-0", *options).status == 0
    (tmp_path / "json").write_bytes(kseg(tmp_path, "dump", "-o", "json", "-q", "first/t-0").stdout)
    assert kseg(tmp_path, "build", "json", "--to", "second/t-0", *ALL).status == 0
    before, after = (objects(tmp_path, f"{place}/t-0/{0:020}.log") for place in ("first", "second"))
    assert before[2] == after[2]
    assert before[2]["control"]
    assert before[0]["value"] != after[0]["value"]


@for_each("magic, codec", FORMATS)
def test_lookup_redacts_as_dump_does(magic: int, codec: Codec, tmp_path: Path) -> None:
    log = write(tmp_path, magic, codec)
    dumped = objects(tmp_path, str(log), *ALL)
    text = kseg(tmp_path, "dump", "--print-data-log", str(log), *ALL).stdout
    for record in dumped:
        where = ("lookup", "t-0", "--offset", str(record["offset"]), *ALL)
        assert json.loads(kseg(tmp_path, *where, "-o", "json").stdout)["record"] == record
        ran = kseg(tmp_path, *where, "--print-data-log")
        assert ran.stdout[ran.stdout.index(b"\noffset: ") + 1 :] in text
        assert not [word for word in SECRETS if word in ran.stdout]


def test_lookup_finds_the_line_of_a_record_whose_line_ends_are_redacted(tmp_path: Path) -> None:
    builder = RecordsBuilder()
    for number in range(40):
        builder.append(1000, b"\n\xff" * number, b"\xff\n" + bytes((number,)))
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(builder.build().raw)
    dumped = kseg(tmp_path, "dump", "--print-data-log", "t-0", *ALL).stdout
    for number in range(40):
        ran = kseg(tmp_path, "lookup", "t-0", "--offset", str(number), "--print-data-log", *ALL)
        assert ran.stdout[ran.stdout.index(b"\noffset: ") + 1 :] in dumped
        assert ran.stdout.count(b"\noffset: ") == 1


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("form", [["--print-data-log"], ["--print-data-log", "--shallow"], ["-o", "json"]])
def test_records_of_requests_are_redacted(form: list[str], codec: Codec, tmp_path: Path) -> None:
    raw = write(tmp_path, codec=codec).read_bytes()
    partition = {"index": 0, "records": raw}
    body = {"acks": 1, "topicData": [{"name": "orders", "partitionData": [partition]}]}
    (tmp_path / "frames").write_bytes(frame_message(request(0, 9, body)))
    plain = kseg(tmp_path, "protocol", "frames", *form).stdout
    ran = kseg(tmp_path, "protocol", "frames", *form, *ALL)
    assert (ran.status, [word for word in SECRETS if word in ran.stdout]) == (0, [])
    assert (b"alice" in plain) == ("--shallow" not in form)
    assert b"orders" in ran.stdout
    assert plain.count(b"\n") == ran.stdout.count(b"\n")


@pytest.mark.parametrize("command", ["explain", "groups"])
def test_commands_without_redaction_say_so(command: str, tmp_path: Path) -> None:
    assert b"There is no --redact" in kseg(tmp_path, command, "--help").stdout
