"""docs/reference/streams.md names all fields of the objects that `-o json` prints, and their kinds."""

import json
import math
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import click
import pytest

from kseg.cli import COMMANDS, cli
from kseg.formats.messages import build_message
from kseg.formats.schemas import message_schema
from kseg.output.table import Section
from kseg.text import groups, metadata, transactions
from tests import run
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import for_each
from tests.protocol.packets import frame_message, request
from tools.generators.streams import ObjectKind, objects

OBJECTS = objects()
TYPES: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "number": (int, float),
    "text": str,
    "bool": bool,
    "list": list,
    "object": dict,
    "any": object,
}
LINES = (
    "dump -o json docs/test-1-0",
    "dump -o json logs/4.3.1",
    "dump -o json logs/0.10.2.2",
    "dump -o json logs/0.8.2.2",
    "dump -o json damaged/210-wiped-batch damaged/297-snapshot-crc damaged/306-txnindex-cut damaged/270-index-cut",
    "dump -o json damaged/311-checkpoint-garbage damaged/285-time-cut",
    "dump -o json logs/4.3.1/zstd-0 --value-decoder json --limit 5",
    "dump -o json logs/3.9.1",
    "dump -o json docs/test-1-0 --evidence",
    "ls -o json logs/4.3.1",
    "ls -o json logs/4.3.1 --by segment --deep --cache",
    "ls -o json logs/4.3.1 --by segment --from-offset 10",
    "ls -o json logs/4.3.1 --by topic --top 2",
    "ls -o json logs/4.3.1 --by directory",
    "ls -o json tiered/bucket",
    "ls -o json tiered/bucket --by segment",
    "ls -o json damaged/000-torn-header --by segment --deep",
    "ls -o json docs/test-1-0 --evidence",
    "lookup -o json docs/test-1-0 --offset 203500",
    "lookup -o json docs/test-1-0 --offset 1",
    "lookup -o json docs/test-1-0 --timestamp latest",
    "doctor -o json damaged/210-wiped-batch",
    "doctor -o json logs/4.3.1",
    "verify -o json damaged/210-wiped-batch",
    "verify -o json logs/4.3.1 logs/3.9.1 --cluster",
    "verify -o json docs/test-1-0 --evidence",
    "salvage -o json damaged/210-wiped-batch --to saved",
    "salvage -o json damaged/066-codec-5 --dry-run",
    "carve -o json docs/test-1-0/00000000000000203000.log --to carved",
    "redact -o json logs/4.3.1 --to shared --keep groups",
    "diff -o json damaged/210-wiped-batch logs/classes-4.3.1/v2-gzip-create",
    "diff -o json logs/4.3.1 logs/4.3.1-live",
    "diff -o json logs/4.3.1 logs/4.3.1-live --leader logs/4.3.1",
    "report -o json docs/test-1-0",
    "explain -o json docs/test-1-0/00000000000000203000.log --batch 0",
    "explain -o json logs/4.3.1/meta.properties",
    "retain -o json logs/4.3.1",
    "retain -o json docs/test-1-0 --to kept",
    "retain -o json logs/4.3.1 --free 2KB",
    "compact -o json logs/3.6.2/snappy-0 --dry-run",
    "where -o json --key user-17 --partitions 12",
    "where -o json --group billing logs/4.3.1",
    "protocol -o json protocol/4.3.1/clients.pcap",
    "protocol -o json protocol/4.3.1/clients.pcap --count",
    "protocol -o json logs/4.3.1/meta.properties --input-format frames",
    "groups -o json logs/4.3.1",
    "groups -o json logs/2.8.2",
    "txns -o json logs/4.3.1",
    "txns -o json logs/2.8.2",
    "txns -o json logs/2.3.1/txn-1 --explain 5@30",
    "query -o json --dry-run 'select count(*) from \"test-1\"' docs",
    "plan-move -o json logs/0.9.0.1 logs/0.9.0.1-live --cluster-metadata logs/4.3.1",
    "metadata -o json logs/4.3.1",
    "metadata -o json logs/3.3.2",
    "rebuild-metadata -o json logs/4.3.1 --node-id 3001 --dry-run --endpoint CONTROLLER://localhost:9093",
    "export -o json damaged/210-wiped-batch exported",
    "export -o json docs/test-1-0 exported --dry-run",
    "export -o json docs/test-1-0 exported --evidence",
    "export -o json damaged/210-wiped-batch docs lake/{topic}",
    "export -q -o json damaged/210-wiped-batch docs lake/{topic}",
    "export -q -o json docs docs/test-1-0",
)
"""Runs that print most types of objects, on files of many releases and on damaged ones."""


def problems(kind: ObjectKind, value: dict[str, object]) -> Iterator[str]:
    """Yield undocumented and missing fields of an object."""
    fields = {field.name: field for field in kind.fields}
    for name, field in fields.items():
        if name not in value and not field.may_be_missing:
            yield f"{name} isn't there"
    for name, each in value.items():
        if name == "type":
            continue
        if name not in fields:
            yield f"{name} isn't on the page"
        elif each is None:
            if not fields[name].may_be_null:
                yield f"{name} is null"
        elif not isinstance(each, TYPES[fields[name].kind]) or (isinstance(each, bool) and fields[name].kind == "int"):
            yield f"{name} isn't {fields[name].kind}: {each!r}"


@for_each("line", LINES)
def test_objects_have_the_fields_of_the_page(line: str, restored: Path, tmp_path: Path) -> None:
    for path in restored.iterdir():
        (tmp_path / path.name).symlink_to(path)
    words = shlex.split(line)
    ran = run.kseg(words, tmp_path)
    printed = [json.loads(text) for text in ran.stdout.splitlines()]
    assert printed, ran.stderr.decode()
    kinds = OBJECTS[words[0]]
    wrong = set()
    for value in printed:
        name = value.get("type", "answer") if words[0] != "lookup" else "answer"
        if name == "row":  # its other fields are the columns of a table
            value = {key: each for key, each in value.items() if key in ("type", "block", "table")}
        wrong |= {f"{name}: {problem}" for problem in problems(kinds[name], value)} if name in kinds else {name}
    assert wrong == set()


def test_each_command_with_json_is_on_the_page() -> None:
    context = click.Context(cli)
    commands = {name: cli.get_command(context, name) for name in COMMANDS}
    with_json = {
        name
        for name, command in commands.items()
        for option in (() if command is None else command.params)
        if "-o" in option.opts and isinstance(option.type, click.Choice) and "json" in option.type.choices
    }
    assert with_json - {"spark-export"} == OBJECTS.keys()


@pytest.mark.parametrize(
    ("commands", "module"),
    [
        (("groups",), groups),
        (("txns", "plan-move"), transactions),
        (("metadata", "rebuild-metadata"), metadata),
    ],
    ids=lambda value: str(getattr(value, "__name__", value)),
)
def test_page_has_the_columns_of_tables_in_their_order(commands: tuple[str, ...], module: object) -> None:
    objects = {kind: each for command in commands for kind, each in OBJECTS[command].items()}
    for section in vars(module).values():
        if isinstance(section, Section):
            names = [column.name for column in section.columns]
            assert [field.name for field in objects[section.type].fields] == names


def test_numbers_that_json_lacks_are_texts_as_in_java(tmp_path: Path) -> None:
    """Quotas are doubles, which may be infinite or NaN: a line with NaN is invalid JSON for other programs."""
    entity = [{"entityType": "user", "entityName": "u"}]
    values = {"a": math.inf, "b": -math.inf, "c": math.nan, "d": 1.5}
    quotas = [{"entity": entity, "key": key, "value": value, "remove": False} for key, value in values.items()]
    message = message_schema("ClientQuotaRecord")
    records = [
        NewRecord(None, bytes((1, message.api_key or 0, 0)) + build_message(message, 0, each)) for each in quotas
    ]
    log = write_segment(tmp_path / "__cluster_metadata-0", [NewBatch(records)])
    frame = request(49, 1, {"entries": [{"entity": entity, "ops": quotas}]})
    (tmp_path / "frames").write_bytes(frame_message(frame))
    lines = {
        name: run.kseg([*arguments, "-o", "json"], tmp_path).stdout.decode().splitlines()
        for name, arguments in {
            "metadata": ["metadata", ".", "--show", "quotas"],
            "dump": ["dump", "__cluster_metadata-0", "-q"],
            "protocol": ["protocol", "frames", "--print-data-log"],
            "explain": ["explain", str(log)],
        }.items()
    }
    found = {name: [json.loads(line, parse_constant=_refuse) for line in own] for name, own in lines.items()}
    script = run.kseg(["metadata", ".", "-o", "commands"], tmp_path).stdout
    assert b"--add-config a=Infinity,b=-Infinity,c=NaN,d=1.5" in script
    wanted = ["Infinity", "-Infinity", "NaN", 1.5]
    assert [row["limit"] for row in found["metadata"] if row["type"] == "quota"] == wanted
    decoded = [row["valueDecoded"]["data"]["value"] for row in found["dump"] if row["type"] == "record"]
    assert decoded == wanted
    assert [each["value"] for each in found["protocol"][0]["body"]["entries"][0]["ops"]] == wanted
    assert [row["value"] for row in found["explain"] if row.get("kind") == "float64"] == wanted


def _refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} isn't JSON's")


def test_a_name_stands_for_one_kind_of_value() -> None:
    kinds: dict[str, set[str]] = {}
    for types in objects().values():
        for each in types.values():
            for field in each.fields:
                kinds.setdefault(field.name, set()).add(field.kind)
    assert {name: own for name, own in kinds.items() if len(own - {"any"}) > 1} == {}
