"""Kafka's stored message schemas: kseg's files equal the output of tools/read_schemas.py."""

import json
import zipfile
from pathlib import Path

from kseg.formats.header_fields import INT64, TRANSACTION_INDEX_ENTRY_FIELDS, TRANSACTION_INDEX_VERSION
from kseg.releases import NEWEST
from tests.architecture import ROOT
from tests.loops import for_each
from tools import read_schemas

FOLDER = ROOT / "kseg" / "formats" / "message_schemas"
FILES = [file.name for file in read_schemas.FILES]

SCHEMA = """// A licence.
{
  "apiKey": 3,
  "type": "request",
  "listeners": ["broker"],
  "name": "ExampleRequest",
  // Version 2 is flexible.
  "validVersions": "0-2",
  "flexibleVersions": "2+",
  "latestVersionUnstable": false,
  "fields": [
    { "name": "GroupId", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null",
      "about": "The group." },
    { "name": "Epoch", "type": "int32", "versions": "1+", "default": "-1", "ignorable": true },
    { "name": "MaxBytes", "type": "int32", "versions": "0+", "default": "0x7fffffff" },
    { "name": "IsLast", "type": "bool", "versions": "0+", "default": "false" },
    { "name": "Left", "type": "[]Part", "versions": "0+" },
    { "name": "Right", "type": "Part", "tag": 0, "taggedVersions": "2+", "default": null }
  ],
  "commonStructs": [
    { "name": "Part", "versions": "0+", "fields": [{ "name": "Id", "type": "uuid", "versions": "0+" }] }
  ]
}
"""
LINE = (
    '{"apiKey":3,"type":"request","name":"ExampleRequest","validVersions":"0-2","flexibleVersions":"2+","fields":['
    '{"name":"groupId","type":"string","versions":"0+","nullableVersions":"0+","default":"null"},'
    '{"name":"epoch","type":"int32","versions":"1+","default":-1},'
    '{"name":"maxBytes","type":"int32","versions":"0+","default":2147483647},'
    '{"name":"isLast","type":"bool","versions":"0+"},'
    '{"name":"left","type":"[]Part","versions":"0+"},'
    '{"name":"right","type":"Part","versions":"2+","tag":0,"taggedVersions":"2+"}],'
    '"commonStructs":[{"name":"Part","fields":[{"name":"id","type":"uuid","versions":"0+"}]}]}\n'
)


def test_tool_writes_what_kseg_uses_of_a_schema_in_a_jar(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "kafka-clients-9.0.0.jar", "w") as jar:
        jar.writestr("common/message/ExampleRequest.json", SCHEMA)
        jar.writestr("common/message/README.md", "no schema")
    ((name, schema),) = read_schemas.read_schemas(tmp_path, "9.0.0")
    assert (name, read_schemas.file_text([schema])) == ("kafka-clients", LINE)


def test_entry_of_a_transaction_index_is_the_version_and_kafkas_schema() -> None:
    schema = json.loads((FOLDER / "transaction_index.jsonl").read_text(encoding="utf-8"))
    version, *fields = TRANSACTION_INDEX_ENTRY_FIELDS.fields
    assert (version.name, schema["validVersions"]) == ("version", f"{TRANSACTION_INDEX_VERSION}")
    names = {field["name"].lower(): field["type"] for field in schema["fields"]}
    assert [(field.name.replace("_", ""), field.type) for field in fields] == [(name, INT64) for name in names]
    assert set(names.values()) == {"int64"}


def test_stored_files_are_the_tools() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(FILES)
    assert str(NEWEST) == read_schemas.NEWEST


@for_each("name", FILES)
def test_stored_lines_are_as_the_tool_writes_them(name: str) -> None:
    text = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    assert read_schemas.file_text([json.loads(line) for line in text.splitlines()]) == text
