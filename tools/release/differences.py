"""Differences between a new release of Kafka and the releases that kseg knows, with the files of kseg that change."""

import ast
import json
import re
from collections.abc import Callable, Container, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from kseg.cluster import metadata_access as access
from kseg.cluster.settings import TOPIC_SETTINGS, SettingType
from kseg.coordinators.share_progress import DeliveryState
from kseg.findings.broker_log import KNOWN_LINES
from kseg.formats.codes import Codec, ControlType, TimestampType
from kseg.protocol.error_codes import ErrorCode
from tools.read_schemas import FILES, NEWEST, Schema, file_text
from tools.release.jars import Jars, cited_classes, strings_of

ROOT = Path(__file__).resolve().parent.parent.parent
SCHEMAS = Path("kseg/formats/message_schemas")
NEW, CHANGED, GONE = "new", "changed", "gone"
SHORTEST = 12
"""Characters of a part of a broker's message that identify it among all texts of a release."""
MOST_METHODS = 6
"""Methods of a class that are listed; a class with more is best read as a whole."""
DUMP_TOOL = "DumpLogSegments"


class Place(NamedTuple):
    """A file of kseg, and what to do there."""

    file: str
    step: str


PLACES = {
    "release": Place("kseg/releases.py", "add it to the names of releases"),
    "tool": Place("golden", "record golden data when the tool is published"),
    "message": Place(f"{SCHEMAS}", "raise NEWEST in tools/read_schemas.py, and run it"),
    "message of no file": Place("tools/read_schemas.py", "let a row of FILES take it, and decode it"),
    "topic setting": Place("kseg/cluster/settings.py", "add a row to TOPIC_SETTINGS, or its last level"),
    "text of the dump tool": Place(
        "kseg/layouts", "record golden data, then add rows for lines that differ; JSON is in kseg/decode/"
    ),
    "broker's message": Place("kseg/findings/broker_log.py", "add the new words, with the release"),
    "Java program": Place("", "import the class from its new place"),
    "error code": Place("kseg/protocol/error_codes.py", "add it to ErrorCode"),
    "codec": Place("kseg/formats/codes.py", "add it to Codec, and its library to kseg/codecs/"),
    "control record": Place("kseg/formats/codes.py", "add it to ControlType"),
    "timestamp type": Place("kseg/formats/codes.py", "add it to TimestampType"),
    "ACL resource": Place("kseg/cluster/metadata_access.py", "add it to ACL_RESOURCES"),
    "ACL pattern": Place("kseg/cluster/metadata_access.py", "add it to PATTERN_TYPES"),
    "ACL operation": Place("kseg/cluster/metadata_access.py", "add it to OPERATIONS"),
    "ACL permission": Place("kseg/cluster/metadata_access.py", "add it to PERMISSIONS"),
    "SCRAM mechanism": Place("kseg/cluster/metadata_access.py", "add it to MECHANISMS"),
    "type of settings": Place("kseg/cluster/settings.py", "add it to SettingType"),
    "delivery state": Place("kseg/coordinators/share_progress.py", "add it to DeliveryState"),
    "metadata.version": Place("kseg/cluster/settings.py", "name the level if a topic setting begins or ends with it"),
    "class": Place("", "read the new code of the methods"),
}
"""Each kind of difference, and the file that changes, in the order of the list; classes are last, as mere candidates.
A class's file is the module that cites it, or the Java program that imports it."""
CODES: Mapping[str, tuple[str, set[int]]] = {
    "Errors#code": ("error code", {*ErrorCode}),
    "CompressionType#id": ("codec", {*Codec}),
    "ControlRecordType#type": ("control record", {*ControlType}),
    "TimestampType#id": ("timestamp type", {*TimestampType}),
    "ResourceType#code": ("ACL resource", {*access.ACL_RESOURCES}),
    "PatternType#code": ("ACL pattern", {*access.PATTERN_TYPES}),
    "AclOperation#code": ("ACL operation", {*access.OPERATIONS}),
    "AclPermissionType#code": ("ACL permission", {*access.PERMISSIONS}),
    "ScramMechanism#type": ("SCRAM mechanism", {*access.MECHANISMS}),
    "DescribeConfigsResponse$ConfigType#id": ("type of settings", {*SettingType}),
    "RecordState#id": ("delivery state", {*DeliveryState}),
    "MetadataVersion#featureLevel": ("metadata.version", set()),
}
"""Kafka's enums, with the member that has a constant's number: the kind of difference, and the numbers in kseg."""


class Difference(NamedTuple):
    """Something new, changed or gone, and the file of kseg that changes."""

    kind: str
    change: str
    subject: str
    file: str


def differences(known: Jars, new: Jars) -> Iterator[Difference]:
    """Yield what kseg doesn't know of a new release. known: the newest release that kseg knows."""
    yield _difference("release", NEW, new.release)
    if not new.has_tools:
        yield _difference("tool", GONE, f"kafka-tools {new.release} isn't published")
    yield from schema_differences(known.schemas, new.schemas)
    facts, known_facts = new.facts(CODES), known.facts(CODES)
    yield from code_differences(known_facts, facts)
    yield from setting_differences(known_facts, facts)
    yield from line_differences(known.classes, new.classes)
    yield from tool_differences(known, new)
    yield from class_differences(known, new)
    yield from import_differences(known.classes, new.classes)


def _difference(kind: str, change: str, subject: str) -> Difference:
    return Difference(kind, change, subject, PLACES[kind].file)


def schema_differences(known: list[tuple[str, Schema]], new: list[tuple[str, Schema]]) -> Iterator[Difference]:
    """Yield messages that differ from those in kseg's files, and messages that no file takes."""
    taken = set()
    for file in FILES:
        if file.release != NEWEST:
            continue
        chosen = [schema for jar, schema in new if file.takes(jar, schema)]
        taken |= {schema["name"] for schema in chosen}
        path = SCHEMAS / f"{file.name}.jsonl"
        before = _messages((ROOT / path).read_text(encoding="utf-8"))
        for change, subject in _compared(before, _messages(file_text(chosen)), _message_changes):
            yield Difference("message", change, subject, path.as_posix())
    others = {schema["name"] for _, schema in new} - taken - {schema["name"] for _, schema in known}
    yield from (_difference("message of no file", NEW, name) for name in sorted(others))


def _compared(
    before: Mapping[str, Schema], after: Mapping[str, Schema], changes: Callable[[Schema, Schema], str]
) -> Iterator[tuple[str, str]]:
    """Yield changes of entries by name, with their descriptions."""
    for name in sorted({*before, *after}):
        if name not in before:
            yield NEW, name
        elif name not in after:
            yield GONE, name
        elif before[name] != after[name]:
            yield CHANGED, f"{name}: {changes(before[name], after[name])}"


def _messages(lines: str) -> dict[str, Schema]:
    return {schema["name"]: schema for schema in map(json.loads, lines.splitlines())}


def _message_changes(before: Schema, after: Schema) -> str:
    """Return the changes of a message: its versions, then its fields."""
    changes = [
        f"{name} {before.get(name)} → {after.get(name)}"
        for name in ("validVersions", "flexibleVersions", "apiKey", "type")
        if before.get(name) != after.get(name)
    ]
    fields, later = dict(_fields(before)), dict(_fields(after))
    changes += [f"{change} field {name}" for change, name in _compared(fields, later, lambda *_: "")]
    return ", ".join(change.rstrip(": ") for change in changes)


def _fields(schema: Schema, prefix: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield the fields of a message or structure with their places, and what is said of each."""
    for field in schema.get("fields", ()):
        place = f"{prefix}{field['name']}"
        yield place, {name: value for name, value in field.items() if name != "fields"}
        yield from _fields(field, f"{place}.")
    for structure in schema.get("commonStructs", ()):
        yield from _fields(structure, f"{structure['name']}.")


def code_differences(known: list[list[str]], new: list[list[str]]) -> Iterator[Difference]:
    """Yield constants that differ from the known release's, except those that kseg has already."""
    for enum, (kind, numbers) in CODES.items():
        before, after = ({row[1]: int(row[2]) for row in rows if row[0] == enum} for rows in (known, new))
        for name in sorted({*before, *after}, key=lambda name: after.get(name, before.get(name, 0))):
            if name not in before and after[name] not in numbers:
                yield _difference(kind, NEW, f"{name} = {after[name]}")
            elif name not in after:
                yield _difference(kind, GONE, name)
            elif name in before and before[name] != after[name]:
                yield _difference(kind, CHANGED, f"{name} = {before[name]} → {after[name]}")


def setting_differences(known: list[list[str]], new: list[list[str]]) -> Iterator[Difference]:
    """Yield settings of topics that differ from the known release's, except those that kseg has already."""
    has = {each.name: f"{each.type.name} {each.default}" for each in TOPIC_SETTINGS}
    before, after = ({row[1]: row[2] for row in rows if row[0] == "settings"} for rows in (known, new))
    for name in sorted({*before, *after}):
        if name not in after:
            yield _difference("topic setting", GONE, name)
        elif before.get(name) != after[name] != has.get(name):
            was = f"{before[name]} → " if name in before else ""
            yield _difference("topic setting", CHANGED if was else NEW, f"{name}: {was}{after[name]}")


def line_differences(known: Mapping[str, bytes], new: Mapping[str, bytes]) -> Iterator[Difference]:
    """Yield a broker's messages that kseg recognizes, and that only the known release has."""
    texts, later = b"\n".join(known.values()), b"\n".join(new.values())
    for line in KNOWN_LINES:
        parts = [part.encode() for part in re.split(r"…|\{\w+\}", line.words) if len(part) >= SHORTEST]
        if parts and all(part in texts for part in parts) and not all(part in later for part in parts):
            yield _difference("broker's message", GONE, line.readable)


def tool_differences(known: Jars, new: Jars) -> Iterator[Difference]:
    """Yield texts that only one of the dump tools has; none if one of them isn't published."""
    if known.has_tools and new.has_tools:
        before, after = (_tool_texts(each.classes) for each in (known, new))
        yield from (_difference("text of the dump tool", GONE, repr(text)) for text in sorted(before - after))
        yield from (_difference("text of the dump tool", NEW, repr(text)) for text in sorted(after - before))


def _tool_texts(classes: Mapping[str, bytes]) -> set[str]:
    """Return the texts of the dump tool's classes."""
    own = (data for name, data in classes.items() if name.rpartition("/")[2].partition("$")[0] == DUMP_TOOL)
    return {text for data in own for text in strings_of(data)}


def class_differences(known: Jars, new: Jars) -> Iterator[Difference]:
    """Yield classes that kseg's docstrings name as sources, and whose code differs: per file, with the methods."""
    cited: dict[tuple[str, str], set[str]] = {}
    for file, docstring in _docstrings():
        for name, member in cited_classes(docstring):
            cited.setdefault((file, name), set()).add(member)
    pairs = {name: (known.named(name), new.named(name)) for _, name in cited}
    shared = {name: (before[0], after[0]) for name, (before, after) in pairs.items() if len(before) == len(after) == 1}
    code = known.members({before for before, _ in shared.values()})
    later = new.members({after for _, after in shared.values()})
    for (file, name), members in sorted(cited.items()):
        if name in shared:
            before, after = code[shared[name][0]], later[shared[name][1]]
            changed = [each for each in sorted({*before, *after}) if before.get(each) != after.get(each)]
            if methods := _named_methods(changed if "" in members else sorted(members.intersection(changed))):
                yield Difference("class", CHANGED, f"{name}: {methods}", file)
        elif pairs[name][0] and not pairs[name][1]:
            yield Difference("class", GONE, name, file)


def _named_methods(methods: list[str]) -> str:
    """Return the methods that a person wrote, as far as they fit."""
    written = [each for each in methods if "$" not in each]
    others = len(written) - MOST_METHODS
    return ", ".join(written[:MOST_METHODS]) + (f" and {others} more" if others > 0 else "")


def import_differences(known: Container[str], new: Container[str]) -> Iterator[Difference]:
    """Yield classes that Java programs of the project import, and that only the known release has."""
    for path in sorted(each for folder in ("tools", "bench", "tests") for each in (ROOT / folder).rglob("*.java")):
        for name in re.findall(r"^import ([\w.]+);$", path.read_text(encoding="utf-8"), re.MULTILINE):
            full = name.replace(".", "/")
            if full in known and full not in new:
                yield Difference("Java program", GONE, name, path.relative_to(ROOT).as_posix())


def _docstrings() -> Iterator[tuple[str, str]]:
    """Yield all texts of kseg's modules that stand alone, as docstrings do, with their files."""
    for path in sorted((ROOT / "kseg").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "Source:" in text:
            for node in ast.walk(ast.parse(text)):
                if (
                    isinstance(node, ast.Expr)
                    and isinstance(node.value, ast.Constant)
                    and isinstance(node.value.value, str)
                ):
                    yield path.relative_to(ROOT).as_posix(), node.value.value
