"""The decoders that --key-decoder and --value-decoder name."""

import json
import struct
import uuid
from decimal import Decimal

import msgpack
import pytest

from kseg.decode.decoded import Decoded, decoded_text, json_able
from kseg.decode.values import CLASSES, DECODERS, DecoderOptions, value_decoder
from kseg.errors import KsegError, UsageError
from kseg.kernel.record import Header
from tests.loops import for_each

NO_OPTIONS = DecoderOptions()


def decode_value(name: str, data: bytes) -> Decoded:
    return value_decoder(name, NO_OPTIONS, "value")(data, ())


UUID = uuid.UUID("6b156641-9a3c-42cd-bb94-d06e58be2445")


@for_each(
    "name, data, value",
    [
        ("string", "zoë".encode(), "zoë"),
        ("string", b"", ""),
        ("bytes", b"\xff\0", b"\xff\0"),
        ("hex", b"\xff\0", "ff00"),
        ("base64", b"\xff\0", "/wA="),
        ("int32", struct.pack(">i", -5), -5),
        ("int64", struct.pack(">q", 2**53 + 1), 2**53 + 1),
        ("double", struct.pack(">d", 0.1), 0.1),
        ("double", struct.pack(">d", float("-inf")), "-Infinity"),
        ("uuid", str(UUID).encode(), str(UUID)),
        ("uuid", UUID.bytes, str(UUID)),
        ("json", b' {"b": [1, 1.5, null], "a": "\\u00e9"}', {"b": [1, 1.5, None], "a": "é"}),
        ("json", b'\0\0\0\0\x07{"a": 1}', {"a": 1}),
        ("json", b"12345678901234567890123", 12345678901234567890123),
        ("json-pretty", b'{"a": [1]}', {"a": [1]}),
        ("msgpack", msgpack.packb({"a": [1, b"\xff", None], 7: "x"}), {"a": [1, "/w==", None], "7": "x"}),
        ("msgpack", msgpack.packb(msgpack.ExtType(9, b"\xff")), {"extensionType": 9, "dataBase64": "/w=="}),
        ("msgpack", msgpack.packb(msgpack.Timestamp(1, 0)), "1970-01-01T00:00:01+00:00"),
        ("auto", b'{"a": 1}', {"a": 1}),
        ("auto", b"[1]", [1]),
        ("auto", b"007", "007"),
        ("auto", b"12", "12"),
        ("auto", b"{no json", "{no json"),
        ("auto", "tab\tzoë\n".encode(), "tab\tzoë\n"),
        ("auto", b"\0\0\0\x05", b"\0\0\0\x05"),
        ("auto", b"\xff", b"\xff"),
    ],
    ids=repr,
)
def test_bytes_have_their_meaning(name: str, data: bytes, value: object) -> None:
    assert decode_value(name, data) == Decoded(value)


@for_each(
    "name, data, words",
    [
        ("string", b"ab\xff", "byte 0xff at 2"),
        ("int32", b"\0\0\1", "3 bytes, expected 4"),
        ("int64", b"", "0 bytes, expected 8"),
        ("double", b"123456789", "9 bytes, expected 8"),
        ("uuid", b"x" * 36, "not a uuid"),
        ("uuid", b"x" * 17, "17 bytes"),
        ("json", b"", "not JSON"),
        ("json", b'{"a": 1} x', "not JSON"),
        ("json", b"NaN", "NaN"),
        ("json", b"1e999", "too large"),
        ("json", b'{"a": 1, "a": 2}', "is repeated"),
        ("json", b'"\\ud800"', "not JSON"),
        ("json", b"[" * 100_000, "deeply"),
        ("json", b"9" * 5000, "not JSON"),
        ("msgpack", b"\xc1", "not MessagePack"),
        ("msgpack", msgpack.packb([1]) + b"\0", "not MessagePack"),
        ("msgpack", b"\x91" * 100_000, "not MessagePack"),
        ("msgpack", b"\xdd\xff\xff\xff\xff", "not MessagePack"),
        ("msgpack", msgpack.packb({1: "a", "1": "b"}), "same text"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_bytes_that_do_not_decode_are_kept_with_a_line_that_says_why(name: str, data: bytes, words: str) -> None:
    found = decode_value(name, data)
    assert found.value == data
    assert found.reason is not None
    assert words in found.reason
    assert found.reason.isprintable()


def test_a_reason_holds_no_escape_sequences_of_the_data() -> None:
    reason = decode_value("json", b'{"\x1b[31m": 1, "\x1b[31m": 2}').reason
    assert reason is not None
    assert reason.isprintable()


@for_each("name", [name for name in CLASSES if CLASSES[name] not in ("avro", "protobuf")])
def test_kafkas_class_names_mean_these_decoders(name: str) -> None:
    data = str(UUID).encode()[:8]
    assert decode_value(f"org.example.{name}", data) == decode_value(CLASSES[name], data)


@pytest.mark.parametrize("name", ["avro", "protobuf"])
def test_a_decoder_that_needs_a_schema_asks_for_it(name: str) -> None:
    with pytest.raises(UsageError, match=r"--key-decoder .* needs --schema or --schema-registry"):
        value_decoder(name, NO_OPTIONS, "key")


def test_an_unknown_decoder_is_refused_with_those_that_exist() -> None:
    with pytest.raises(UsageError, match=r"--value-decoder nonsense: no such decoder; specify one of string, .*auto"):
        value_decoder("nonsense", NO_OPTIONS, "value")


OWN_MODULE = """
from decimal import Decimal

def upper(data, headers):
    return {"text": data.decode().upper(), "headers": [header.key for header in headers], "price": Decimal("1.10")}

def raw(data, headers):
    return data[1:]

def broken(data, headers):
    raise LookupError("no such\\nthing")

def strange(data, headers):
    return object()

not_callable = 5
"""


@pytest.fixture
def own_module(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path_factory.mktemp("own")
    name = f"own_decoders_{folder.name}"
    (folder / f"{name}.py").write_text(OWN_MODULE)
    monkeypatch.syspath_prepend(str(folder))
    return name


def test_a_callable_of_ones_own_decodes(own_module: str) -> None:
    decode = value_decoder(f"{own_module}:upper", NO_OPTIONS, "value")
    assert decode(b"a", (Header("h", None),)).value == {"text": "A", "headers": ["h"], "price": "1.10"}


def test_a_callable_of_ones_own_may_give_bytes(own_module: str) -> None:
    assert value_decoder(f"{own_module}:raw", NO_OPTIONS, "value")(b"ab", ()) == Decoded(b"b")


@pytest.mark.parametrize(("name", "reason"), [("broken", "LookupError: no such thing"), ("strange", "type object")])
def test_what_goes_wrong_in_ones_own_callable_is_the_reason(own_module: str, name: str, reason: str) -> None:
    found = value_decoder(f"{own_module}:{name}", NO_OPTIONS, "value")(b"ab", ())
    assert found.value == b"ab"
    assert reason in (found.reason or "")


@pytest.mark.parametrize("name", ["not_callable", "missing"])
def test_a_callable_that_is_none_is_refused(own_module: str, name: str) -> None:
    with pytest.raises(UsageError, match=name):
        value_decoder(f"{own_module}:{name}", NO_OPTIONS, "value")


def test_a_missing_module_is_refused() -> None:
    with pytest.raises(KsegError, match="can't be imported"):
        value_decoder("no_such_module:f", NO_OPTIONS, "value")


@pytest.mark.parametrize(("name", "module", "extra"), [("msgpack", "msgpack", "msgpack"), ("avro", "fastavro", "avro")])
def test_a_missing_library_is_named_with_its_extra(
    name: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    schema = tmp_path_factory.mktemp("schema") / "s.avsc"
    schema.write_text('"string"')
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(UsageError, match=rf"{module} is missing; run `pip install 'kseg\[{extra}\]'`"):
        value_decoder(name, DecoderOptions(schema=schema), "value")


def test_without_pip_a_missing_library_is_named_without_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("msgpack", "pip"):
        monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(UsageError, match="msgpack is missing; install kseg with its extra msgpack by pip or uv"):
        value_decoder("msgpack", NO_OPTIONS, "value")


def test_every_decoder_shows_empty_bytes_or_says_why_not() -> None:
    plain = [name for name in DECODERS if name not in ("avro", "protobuf")]
    for name in plain:
        found = decode_value(name, b"")
        assert found.reason is None or found.value == b""


@pytest.mark.parametrize(
    ("value", "pretty", "text"),
    [
        ("text", False, b"text"),
        (b"\xff", False, b"\xff"),
        ({"a": [1, "é"]}, False, '{"a":[1,"é"]}'.encode()),
        ({"a": [1]}, True, b'{\n  "a": [\n    1\n  ]\n}'),
        (None, False, b"null"),
    ],
)
def test_decoded_values_have_a_text(value: str | bytes | None, pretty: bool, text: bytes) -> None:
    assert decoded_text(value, pretty=pretty) == text


def test_whatever_a_library_gives_can_be_written_as_json() -> None:
    value = {1: Decimal("0.10"), "nan": float("nan"), "nested": ({UUID}, b"x")}
    assert json.loads(json.dumps(json_able(value), allow_nan=False)) == {
        "1": "0.10",
        "nan": "NaN",
        "nested": [[str(UUID)], "eA=="],
    }
