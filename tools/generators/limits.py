"""docs/reference/limits.md: the limits of kseg, with the values of their constants."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from kseg.commands.options.types import size_text

INTRODUCTION = """# Limits and bounds

Files may hold anything, so whatever is read has a bound: no file makes kseg take all memory, or never end. What goes
beyond a bound is reported, not silently left out. `python tools/generate.py` makes the tables from the constants in
the source.

Reading a log takes some 30 MiB and as many as its largest batch, however long the log is; each process of `-j` takes as
much again. `-v` prints what a run took. There is no limit on how many segments, partitions or bytes a disk has.
"""


def count(value: int) -> str:
    """Return a number with separated thousands."""
    return f"{value:,}"


def seconds(value: float) -> str:
    """Return a time."""
    return f"{value:g} s"


def share(value: float) -> str:
    """Return a part of a whole."""
    return f"{value:.0%}"


class Bound(NamedTuple):
    """A limit: its subject, the place and the form of its value, and the effect of exceeding it."""

    what: str
    place: str
    beyond: str
    shown: Callable[[Any], str] = size_text


SECTIONS: dict[str, tuple[Bound, ...]] = {
    "Logs and batches": (
        Bound(
            "a body, decompressed; `--max-decompressed` of `kseg dump` sets another limit",
            "kseg.codecs.bodies:DEFAULT_LIMIT",
            "the batch is damaged",
        ),
        Bound("the same, by its compressed size: so many times", "kseg.codecs.bodies:LARGEST_RATIO", "the same", count),
        Bound("and so many bytes more", "kseg.codecs.bodies:LARGEST_RATIO_FREE", "the same"),
        Bound(
            "searches for intact batches after damage, in bytes looked at for each byte of the file on disk",
            "kseg.reading.blocks:SEARCH_COST_LIMIT",
            "the rest is one damage, which says so",
            count,
        ),
        Bound("or in all, whichever is more", "kseg.reading.blocks:SEARCH_COST_FREE", "the same"),
        Bound(
            "an offset above its segment's base offset",
            "kseg.formats.codes:MAXIMUM_RELATIVE_OFFSET",
            "a finding: indexes can't hold it",
            count,
        ),
        Bound(
            "an `.index` that is used to find positions",
            "kseg.dump.entry_lines:LARGEST_LOOKUP",
            "its rest isn't used",
        ),
        Bound(
            "bytes of a producer snapshot",
            "kseg.index.producers:LARGEST_READ",
            "a finding: a broker doesn't take it",
            count,
        ),
        Bound(
            "the cluster's metadata with their snapshots, where a command needs no more than settings",
            "kseg.cluster.metadata_copy:CHEAP_METADATA",
            "they aren't read, and a line says so",
        ),
        Bound("the same in `kseg serve`", "kseg.serve.cluster:LARGEST_METADATA", "the same"),
        Bound("a text file: a checkpoint, `meta.properties`, …", "kseg.system.files:LARGEST_TEXT", "isn't read"),
    ),
    "Archives and standard input": (
        Bound(
            "what is unpacked; `--max-unpacked` sets another limit",
            "kseg.store.location:MAX_UNPACKED",
            "the command ends with 2",
        ),
        Bound(
            "and no more than this part of what is free in TMPDIR",
            "kseg.store.location:SHARE_OF_FREE",
            "the same",
            share,
        ),
        Bound("members of an archive", "kseg.store.archive:MOST_MEMBERS", "the same", count),
        Bound("directories of an archive", "kseg.store.archive:MOST_DIRECTORIES", "the same", count),
        Bound("directories above a member", "kseg.store.archive:MOST_LEVELS", "the same", count),
    ),
    "Printing": (
        Bound("partitions of `--merge time`", "kseg.dump.merged:MOST_PARTITIONS", "the command ends with 2", count),
        Bound(
            "a record as a row of a table",
            "kseg.dump.record_forms:LARGEST_LINE",
            "left out, and counted; `-o json` has it",
        ),
        Bound("key and value of a record for kcat", "kseg.text.kcat_script:LARGEST_RECORD", "left out, and named"),
        Bound("headers of a record for kcat", "kseg.text.kcat_script:LARGEST_HEADERS", "left out, and named"),
        Bound(
            "fields of one piece in `kseg explain`", "kseg.explain.walk:MOST_FIELDS", "the rest is one stretch", count
        ),
        Bound("bytes of a decompressed body there", "kseg.explain.batch:MOST_DECOMPRESSED", "the rest isn't shown"),
        Bound("rows of a table on a page of `kseg report`", "kseg.report.page:MOST_ROWS", "`-o json` has all", count),
        Bound(
            "keys of a partition that `kseg report` tells apart",
            "kseg.report.gather:MOST_KEYS",
            "further ones are estimated",
            count,
        ),
    ),
    "Decoding": (
        Bound(
            "nesting of a value that is shown", "kseg.decode.decoded:MOST_NESTED", "shown raw, with the reason", count
        ),
        Bound("an Avro schema file", "kseg.decode.avro:LARGEST_SCHEMA", "the command ends with 2"),
        Bound("values in a schema's JSON", "kseg.decode.avro:MOST_VALUES", "the command ends with 2", count),
        Bound("a JSON schema file", "kseg.export.write.typed_plan:LARGEST_JSON_SCHEMA", "the command ends with 2"),
        Bound("a file of Protobuf descriptors", "kseg.decode.protobuf:LARGEST_DESCRIPTORS", "the command ends with 2"),
        Bound(
            "characters of a schema in a registry's topic",
            "kseg.decode.schema_registry:LARGEST_TEXT",
            "values of it are shown raw",
            count,
        ),
        Bound(
            "characters of all schemas there",
            "kseg.decode.schema_registry:MOST_TEXT",
            "the command ends with 2",
            count,
        ),
        Bound("schemas there that one needs", "kseg.decode.avro:MOST_NEEDED", "values of it are shown raw", count),
        Bound("parts of a path by which one imports another", "kseg.decode.protobuf:MOST_PARTS", "the same", count),
        Bound("fields of a Protobuf value", "kseg.decode.protobuf:MOST_FIELDS", "shown raw", count),
        Bound(
            "columns of a decoded column",
            "kseg.export.columns.column_types:MOST_COLUMNS",
            "the schema isn't used",
            count,
        ),
        Bound(
            "nesting of a decoded column",
            "kseg.export.columns.column_types:MOST_LEVELS",
            "the schema isn't used",
            count,
        ),
    ),
    "Remote tiers": (
        Bound(
            "levels of folders, a partition's own among them",
            "kseg.tiered.places:DEEPEST",
            "isn't taken for a tier",
            count,
        ),
        Bound("a segment's manifest", "kseg.tiered.manifest:LARGEST_MANIFEST", "the segment isn't read"),
        Bound("a segment's leader epochs", "kseg.tiered.segments:LARGEST_CHECKPOINT", "a finding; they aren't used"),
        Bound("bytes of a segment", "kseg.tiered.segment_bytes:LARGEST_FILE", "the segment isn't read", count),
        Bound("chunks of a segment", "kseg.tiered.segment_bytes:MOST_CHUNKS", "the segment isn't read", count),
        Bound("a chunk, decompressed", "kseg.tiered.segment_bytes:LARGEST_CHUNK", "it can't be read"),
    ),
    "Object stores": (
        Bound(
            "until an object store answers, unless it is written to",
            "kseg.store.objects:SECONDS",
            "the command ends with 3",
            seconds,
        ),
        Bound("an answer of WebHDFS", "kseg.store.web_hdfs:LARGEST_ANSWER", "the command ends with 2"),
        Bound("folders within each other there", "kseg.store.web_hdfs:MOST_LEVELS", "the same", count),
        Bound("until something comes from WebHDFS", "kseg.store.web_hdfs:SECONDS", "the same", seconds),
    ),
    "Protocol": (
        Bound("a frame; `--max-frame` sets another limit", "kseg.protocol.messages:MAX_FRAME", "it is no frame"),
        Bound("elements of a message", "kseg.protocol.messages:MOST_ELEMENTS", "it can't be read", count),
        Bound("a decompressed batch in a frame", "kseg.protocol.messages:LARGEST_BODY", "its records aren't read"),
        Bound("text of the records of a frame", "kseg.dump.protocol:MOST_TEXT", "further batches aren't read"),
        Bound(
            "bytes of a connection that came too early",
            "kseg.protocol.capture:MOST_HELD_BYTES",
            "what is missing is given up",
        ),
    ),
    "Queries and exports": (
        Bound("SQL on standard input", "kseg.commands.query:LARGEST_SQL", "the command ends with 2"),
        Bound(
            "temporary files of a query",
            "kseg.query.database:MOST_TEMPORARY",
            "the query ends with 2",
        ),
        Bound(
            "bytes of keys and values in a record batch of `to_arrow`", "kseg.arrow:MAX_BYTES", "the next one begins"
        ),
        Bound(
            "a manifest of an export; what its tasks exchange in Spark",
            "kseg.export.commit.manifest:MOST_BYTES",
            "it is neither written nor read",
        ),
        Bound("the marker of a run of an export", "kseg.export.commit.runs:MOST_MARKER_BYTES", "it isn't read"),
        Bound(
            "what an interrupted export keeps of an order",
            "kseg.export.commit.runs:MOST_ORDER_BYTES",
            "it isn't read",
        ),
        Bound(
            "the catalog of an Iceberg table in its directory, and each of SQLite's files next to it",
            "kseg.export.commit.iceberg:LARGEST_CATALOG",
            "the command ends with 2",
        ),
        Bound(
            "a file of that table's metadata",
            "kseg.export.commit.iceberg_files:LARGEST_METADATA",
            "the command ends with 2",
        ),
    ),
    "Serving": (
        Bound("connections at once", "kseg.serve.values:Limits.connections", "an idle one is closed for it", count),
        Bound("a connection without a request", "kseg.serve.values:Limits.idle_seconds", "it is closed", seconds),
        Bound("a request", "kseg.serve.values:LARGEST_REQUEST", "the connection is closed"),
        Bound("a request before the client has logged in", "kseg.serve.values:LARGEST_LOGIN_REQUEST", "the same"),
        Bound("elements and tagged fields of a request", "kseg.serve.values:MOST_REQUEST_ELEMENTS", "the same", count),
        Bound(
            "requests above 16KiB, in all",
            "kseg.serve.values:Limits.request_bytes",
            "the oldest one makes way once it has taken 2 s, others wait",
        ),
        Bound("a response, without its records", "kseg.serve.values:Limits.answer", "the connection is closed"),
        Bound(
            "responses above 64KiB, in all, without records",
            "kseg.serve.values:Limits.answer_bytes",
            "the client that has been taking one the longest makes way once it has taken 2 s, others wait",
        ),
        Bound(
            "a worker's turn for a request",
            "kseg.serve.values:FIRST_TURN_SECONDS",
            "requests that took less go first",
            seconds,
        ),
        Bound("all turns of a request", "kseg.serve.values:SHORT_SECONDS", "it is a long one", seconds),
        Bound("requests between two such turns", "kseg.serve.values:MOST_SHORT", "further ones are long ones", count),
        Bound(
            "long or large requests, and those of busy clients, that are worked on",
            "kseg.serve.values:MOST_BEGUN",
            "further ones wait",
            count,
        ),
        Bound("a turn of one of these", "kseg.serve.values:TURN_SECONDS", "others have their turn", seconds),
        Bound("workers, of three, that have these", "kseg.serve.values:MOST_BUSY_TURNS", "they wait", count),
        Bound(
            "a request, from its size on",
            "kseg.serve.values:Limits.request_seconds",
            "the connection is closed",
            seconds,
        ),
        Bound(
            "until a client has taken the next piece of a response",
            "kseg.serve.values:Limits.stalled_seconds",
            "the same",
            seconds,
        ),
        Bound("records in a response", "kseg.serve.values:LARGEST_FETCH", "the next fetch has more"),
        Bound(
            "waiting of a fetch at a log's end", "kseg.serve.values:LONGEST_WAIT_SECONDS", "an empty answer", seconds
        ),
        Bound("groups", "kseg.serve.values:MOST_GROUPS", "an error to the client", count),
        Bound("members of a group", "kseg.serve.values:MOST_MEMBERS", "an error to the client", count),
        Bound("users", "kseg.serve.login:MOST_USERS", "the command ends with 2", count),
    ),
    "Settings": (
        Bound("the file of `KSEG_CONFIG`", "kseg.commands.config_file:LARGEST_FILE", "the command ends with 2"),
        Bound("the file of `--sasl-users`", "kseg.serve.login:LARGEST_FILE", "the command ends with 2"),
        Bound(
            "a file of `--tls-cert`, `--tls-key`, `--tls-ca`",
            "kseg.serve.connections:LARGEST_PEM",
            "the command ends with 2",
        ),
        Bound("a file of `--private-key`", "kseg.tiered.segment_bytes:LARGEST_PEM", "the segments can't be read"),
    ),
}


def page() -> str:
    """Return the contents of docs/reference/limits.md."""
    parts = [INTRODUCTION]
    for title, bounds in SECTIONS.items():
        parts.append(f"\n## {title}\n\n| what is bounded | at most | beyond it |\n|---|---|---|\n")
        parts += [f"| {bound.what} | {bound.shown(value_of(bound.place))} | {bound.beyond} |\n" for bound in bounds]
    return "".join(parts)


def value_of(place: str) -> Any:
    """Return the constant at `module:NAME`, or the default of a field at `module:Class.field`."""
    module, _, name = place.partition(":")
    owner, _, field = name.partition(".")
    found = getattr(import_module(module), owner)
    return found.__dataclass_fields__[field].default if field else found
