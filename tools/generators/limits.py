"""docs/reference/limits.md: the limits of kseg, with the values of their constants."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from kseg.commands.options.types import size_text

INTRODUCTION = """# Limits and bounds

A file can't make kseg use all memory or run for ever: every size and number that kseg reads has a limit. If a file
exceeds a limit, kseg reports it. `python tools/generate.py` makes the tables from the constants in the source.

To read a log, kseg needs some 30 MiB and the size of the largest batch, however long the log is. Each process of `-j`
needs the same amount. `-v` prints the memory and time of a run. The number of segments, partitions and bytes on a disk
has no limit.
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
            "kseg.codecs.limits:DEFAULT_LIMIT",
            "the batch is damaged",
        ),
        Bound("the same, as a multiple of its compressed size", "kseg.codecs.limits:LARGEST_RATIO", "the same", count),
        Bound("bytes added to that multiple", "kseg.codecs.limits:LARGEST_RATIO_FREE", "the same"),
        Bound(
            "searches for intact batches after damage, in bytes read per byte of the file on disk",
            "kseg.reading.blocks:SEARCH_COST_LIMIT",
            "the rest is one damage, with the reason",
            count,
        ),
        Bound("the same in total, if this is more", "kseg.reading.blocks:SEARCH_COST_FREE", "the same"),
        Bound(
            "an offset above its segment's base offset",
            "kseg.formats.codes:MAXIMUM_RELATIVE_OFFSET",
            "a finding: indexes can't hold it",
            count,
        ),
        Bound(
            "an `.index` for finding positions",
            "kseg.dump.index_lines:LARGEST_LOOKUP",
            "kseg ignores its rest",
        ),
        Bound(
            "bytes of a producer snapshot",
            "kseg.index.producers:LARGEST_READ",
            "a finding: a broker can't read it",
            count,
        ),
        Bound(
            "the cluster's metadata with its snapshots, if a command needs only settings",
            "kseg.cluster.metadata_copy:CHEAP_METADATA",
            "kseg doesn't read it, and prints a note",
        ),
        Bound("the same in `kseg serve`", "kseg.serve.cluster:LARGEST_METADATA", "the same"),
        Bound(
            "a text file: a checkpoint, `meta.properties`, …", "kseg.system.files:LARGEST_TEXT", "kseg doesn't read it"
        ),
    ),
    "Archives and standard input": (
        Bound(
            "unpacked bytes; `--max-unpacked` sets another limit",
            "kseg.store.location:MAX_UNPACKED",
            "the command ends with 2",
        ),
        Bound(
            "the same, as a share of the free space in TMPDIR",
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
            "omitted and counted; `-o json` has it",
        ),
        Bound("key and value of a record for kcat", "kseg.text.kcat_script:LARGEST_RECORD", "omitted, with a note"),
        Bound("headers of a record for kcat", "kseg.text.kcat_script:LARGEST_HEADERS", "omitted, with a note"),
        Bound(
            "fields of one piece in `kseg explain`", "kseg.explain.walk:MOST_FIELDS", "the rest is one stretch", count
        ),
        Bound(
            "bytes of a decompressed body in `kseg explain`",
            "kseg.explain.batch:MOST_DECOMPRESSED",
            "the rest isn't shown",
        ),
        Bound("rows of a table on a page of `kseg report`", "kseg.report.page:MOST_ROWS", "`-o json` has all", count),
        Bound(
            "different keys of a partition that `kseg report` counts",
            "kseg.report.gather:MOST_KEYS",
            "further keys are estimated",
            count,
        ),
    ),
    "Decoding": (
        Bound("nesting of a printed value", "kseg.decode.decoded:MOST_NESTED", "printed raw, with the reason", count),
        Bound("an Avro schema file", "kseg.decode.avro:LARGEST_SCHEMA", "the command ends with 2"),
        Bound("values in a schema's JSON", "kseg.decode.avro:MOST_VALUES", "the command ends with 2", count),
        Bound("a JSON schema file", "kseg.export.write.typed_plan:LARGEST_JSON_SCHEMA", "the command ends with 2"),
        Bound("a file of Protobuf descriptors", "kseg.decode.protobuf:LARGEST_DESCRIPTORS", "the command ends with 2"),
        Bound(
            "characters of a schema in a registry's topic",
            "kseg.decode.schema_registry:LARGEST_TEXT",
            "its values are printed raw",
            count,
        ),
        Bound(
            "characters of all schemas in the topic",
            "kseg.decode.schema_registry:MOST_TEXT",
            "the command ends with 2",
            count,
        ),
        Bound("schemas that one schema needs", "kseg.decode.avro:MOST_NEEDED", "its values are printed raw", count),
        Bound("parts of the path of an imported schema", "kseg.decode.protobuf:MOST_PARTS", "the same", count),
        Bound("fields of a Protobuf value", "kseg.decode.protobuf:MOST_FIELDS", "printed raw", count),
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
            "levels of folders, with the partition's folder",
            "kseg.tiered.places:DEEPEST",
            "kseg finds no tier",
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
            "time until an object store answers, except to writes",
            "kseg.store.objects:SECONDS",
            "the command ends with 3",
            seconds,
        ),
        Bound("an answer of WebHDFS", "kseg.store.web_hdfs:LARGEST_ANSWER", "the command ends with 2"),
        Bound("levels of folders in WebHDFS", "kseg.store.web_hdfs:MOST_LEVELS", "the same", count),
        Bound("time until WebHDFS sends a byte", "kseg.store.web_hdfs:SECONDS", "the same", seconds),
    ),
    "Protocol": (
        Bound("a frame; `--max-frame` sets another limit", "kseg.protocol.messages:MAX_FRAME", "it isn't a frame"),
        Bound("elements of a message", "kseg.protocol.messages:MOST_ELEMENTS", "it can't be read", count),
        Bound("a decompressed batch in a frame", "kseg.protocol.messages:LARGEST_BODY", "its records aren't read"),
        Bound("text of the records of a frame", "kseg.dump.frame_lines:MOST_TEXT", "further batches aren't read"),
        Bound(
            "out-of-order bytes of a connection",
            "kseg.protocol.capture:MOST_HELD_BYTES",
            "kseg gives up the missing bytes",
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
            "a manifest of an export; messages of its tasks in Spark",
            "kseg.export.commit.manifest:MOST_BYTES",
            "kseg neither writes nor reads it",
        ),
        Bound("the marker of a run of an export", "kseg.export.commit.runs:MOST_MARKER_BYTES", "kseg ignores it"),
        Bound(
            "the result of an order in an interrupted export",
            "kseg.export.commit.runs:MOST_ORDER_BYTES",
            "kseg ignores it",
        ),
        Bound(
            "the catalog of an Iceberg table in its directory, and each SQLite file next to it",
            "kseg.export.commit.iceberg:LARGEST_CATALOG",
            "the command ends with 2",
        ),
        Bound(
            "a metadata file of an Iceberg table",
            "kseg.export.commit.iceberg_files:LARGEST_METADATA",
            "the command ends with 2",
        ),
    ),
    "Serving": (
        Bound("connections at once", "kseg.serve.values:Limits.connections", "kseg closes an idle connection", count),
        Bound("a connection without a request", "kseg.serve.values:Limits.idle_seconds", "it is closed", seconds),
        Bound("a request", "kseg.serve.values:LARGEST_REQUEST", "the connection is closed"),
        Bound("a request before the client has logged in", "kseg.serve.values:LARGEST_LOGIN_REQUEST", "the same"),
        Bound("elements and tagged fields of a request", "kseg.serve.values:MOST_REQUEST_ELEMENTS", "the same", count),
        Bound(
            "all requests above 16KiB",
            "kseg.serve.values:Limits.request_bytes",
            "the oldest request makes way after 2 s, others wait",
        ),
        Bound("a response, without its records", "kseg.serve.values:Limits.answer", "the connection is closed"),
        Bound(
            "all responses above 64KiB, without records",
            "kseg.serve.values:Limits.answer_bytes",
            "the client that has been reading the longest makes way after 2 s, others wait",
        ),
        Bound(
            "a worker's turn for a request",
            "kseg.serve.values:FIRST_TURN_SECONDS",
            "shorter requests go first",
            seconds,
        ),
        Bound("all turns of a request", "kseg.serve.values:SHORT_SECONDS", "it is a long request", seconds),
        Bound("requests between two such turns", "kseg.serve.values:MOST_SHORT", "further requests are long", count),
        Bound(
            "long or large requests, and requests of busy clients, in progress",
            "kseg.serve.values:MOST_BEGUN",
            "further requests wait",
            count,
        ),
        Bound("a turn of such a request", "kseg.serve.values:TURN_SECONDS", "others have their turn", seconds),
        Bound("workers, of three, with such requests", "kseg.serve.values:MOST_BUSY_TURNS", "the requests wait", count),
        Bound(
            "time to receive a request after its size",
            "kseg.serve.values:Limits.request_seconds",
            "the connection is closed",
            seconds,
        ),
        Bound(
            "time until a client has read the next piece of a response",
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
            "the file of `kseg restore --command-config`, and the files that it names",
            "kseg.client.settings:LARGEST_FILE",
            "the command ends with 2",
        ),
        Bound(
            "a file of `--tls-cert`, `--tls-key`, `--tls-ca`",
            "kseg.system.tls:LARGEST_PEM",
            "the command ends with 2",
        ),
        Bound("a file of `--private-key`", "kseg.tiered.segment_bytes:LARGEST_PEM", "the segments can't be read"),
    ),
}


def page() -> str:
    """Return the contents of docs/reference/limits.md."""
    parts = [INTRODUCTION]
    for title, bounds in SECTIONS.items():
        parts.append(f"\n## {title}\n\n| value | limit | effect of exceeding it |\n|---|---|---|\n")
        parts += [f"| {bound.what} | {bound.shown(value_of(bound.place))} | {bound.beyond} |\n" for bound in bounds]
    return "".join(parts)


def value_of(place: str) -> Any:
    """Return the constant at `module:NAME`, or the default of a field at `module:Class.field`."""
    module, _, name = place.partition(":")
    owner, _, field = name.partition(".")
    found = getattr(import_module(module), owner)
    return found.__dataclass_fields__[field].default if field else found
