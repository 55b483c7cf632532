"""docs/reference/formats.md: names, binary formats, text files, codecs, and the records of internal topics."""

from collections.abc import Iterator
from pathlib import Path

from kseg.explain.walk import HOW_TO_READ, format_page
from kseg.formats.checkpoints import TEXT_FILES
from kseg.formats.codes import CODECS_SINCE, Codec
from kseg.formats.file_names import KIND_OF_EXTENSION, KIND_OF_NAME, SUFFIXES, DirectoryState, FileKind
from kseg.formats.schemas import Field, MessageSchema, messages_in

GOLDEN = Path(__file__).resolve().parent.parent.parent / "golden" / "logs"
TITLE = """# Formats

This page describes every file that a broker leaves on a disk: its name and its contents. `kseg explain FILE` shows the
fields of your file with their bytes. `python tools/generate.py` makes the page from the grammars, names and schemas in
`kseg/formats/`.

1. [Names](#names) · 2. [Batches, indexes, snapshots](#batches-indexes-snapshots) · 3. [Text files](#text-files) ·
4. [Codecs](#codecs) · 5. [Records of internal topics](#records-of-internal-topics)
"""
BINARY = f"""
## Batches, indexes, snapshots

`kseg explain --grammar all` prints these tables too. {HOW_TO_READ}"""
FILES = {
    "recovery-point-offset-checkpoint": "the flushed end of each partition, where recovery after a crash begins",
    "replication-offset-checkpoint": "the high watermark of each partition",
    "log-start-offset-checkpoint": "the first readable offset, if it isn't the base offset of the first segment",
    "cleaner-offset-checkpoint": "the offset up to which the log cleaner has cleaned each compacted partition",
    "leader-epoch-checkpoint": "the first offset of each leader epoch",
    "partition.metadata": "the topic's id; from 2.8 on",
    "meta.properties": "the ids of the cluster, the broker and, from 3.7 on, the directory",
    "quorum-state": "a KRaft node's last knowledge of leader and votes",
    ".kafka_cleanshutdown": "exists after a clean stop: the next start needs no recovery",
    ".lock": "locked by a running broker, so that no second broker uses the directory; empty",
    ".log": "batches, in the order of their offsets",
    ".index": "some offsets, and the positions of their batches",
    ".timeindex": "some largest timestamps, and the offsets up to which they are valid",
    ".txnindex": "the aborted transactions that end in the segment",
    ".snapshot": "the producers that the broker knew at the offset in the name",
    ".checkpoint": "the cluster's metadata at the end offset and epoch in the name, as batches; KRaft",
    ".leader_epoch_checkpoint": "the leader epochs of a segment in local tiered storage",
}
"""The contents of files with their own name or extension."""
STATES = {
    DirectoryState.DELETE: "is being deleted, after `file.delete.delay.ms`",
    DirectoryState.FUTURE: "is being moved here from another log directory",
    DirectoryState.STRAY: "belongs to another broker, by the cluster's metadata",
}
SAMPLES = {
    FileKind.OFFSET_CHECKPOINT: "4.3.1/recovery-point-offset-checkpoint",
    FileKind.LEADER_EPOCH_CHECKPOINT: "4.3.1/zstd-0/leader-epoch-checkpoint",
    FileKind.PARTITION_METADATA: "4.3.1/zstd-0/partition.metadata",
    FileKind.META_PROPERTIES: "4.3.1/meta.properties",
    FileKind.QUORUM_STATE: "4.3.1/__cluster_metadata-0/quorum-state",
    FileKind.CLEAN_SHUTDOWN: "3.9.1/d2/.kafka_cleanshutdown",
}
"""A real file of each kind of text file."""
_SHOWN_LINES = 5
CODEC_FRAMING = {
    Codec.NONE: "The records unchanged.",
    Codec.GZIP: "A gzip member (RFC 1952); Java writes its header without time and name.",
    Codec.SNAPPY: "Blocks in the format of the xerial library. First the magic `82 53 4e 41 50 50 59 00`, the version"
    " and the least compatible version (int32 each, 1). Then blocks: an int32 with the size, and a raw snappy block of"
    " up to 32 KiB of data. The header may come again between blocks. Clients of librdkafka write one raw snappy block"
    " without these headers.",
    Codec.LZ4: "An lz4 frame, version 1, of independent blocks of up to 64 KiB. In a message of format 0, the header's"
    " checksum is wrong: up to 0.9, Kafka computed it from the frame's magic on. kseg reads both, and `kseg serve"
    " --fix-lz4` corrects it for clients that demand the right checksum.",
    Codec.ZSTD: "A zstd frame (RFC 8878); the content size may be missing.",
}
"""The framing of a batch's body, by codec."""
TOPICS: dict[str, tuple[str, str]] = {
    "__consumer_offsets": (
        "consumer_offsets",
        "Key and value each begin with an int16: in the key the type of the record, in the value the version of its"
        " message. The number of a group's partition is the hash of its name modulo the number of partitions. A null"
        " value is a tombstone.",
    ),
    "__transaction_state": (
        "transaction_state",
        "Framed as in `__consumer_offsets`; the hash of the transactional id gives the partition.",
    ),
    "__share_group_state": ("share_group_state", "Framed as in `__consumer_offsets`; from 4.0 on."),
    "__cluster_metadata": (
        "cluster_metadata",
        "No keys. A value begins with three unsigned varints: the version of the frame (1), the type of the record, the"
        " version of its message. Snapshots (`.checkpoint`) hold the same records.",
    ),
    "__remote_log_metadata": ("remote_log_metadata", "Framed as in `__cluster_metadata`."),
}
"""Internal topics: the file of the schemas, and the framing of a message."""


def page() -> str:
    """Return the contents of the page."""
    binary = format_page().replace("\n## ", "\n### ").removeprefix("## ")
    return "\n".join([TITLE, *_names(), BINARY, f"### {binary}", *_text_files(), *_codecs(), *_topics()])


def _names() -> Iterator[str]:
    yield "## Names\n"
    yield "A log directory has a directory for each partition, and these files:\n"
    yield "| file | kind | contents |\n|---|---|---|"
    beside = ("leader-epoch-checkpoint", "partition.metadata", "quorum-state")
    yield from (f"| `{name}` | {kind} | {FILES[name]} |" for name, kind in KIND_OF_NAME.items() if name not in beside)
    yield "| `bootstrap.checkpoint` | checkpoint | the metadata that a new KRaft cluster begins with, as batches |"
    yield "\nIn a partition's directory, the files of a segment are named by its base offset, in 20 digits:\n"
    yield "| file | kind | contents |\n|---|---|---|"
    yield from (f"| `{_name_rows(name)}` | {kind} | {FILES[name]} |" for name, kind in KIND_OF_EXTENSION.items())
    yield from (f"| `{name}` | {KIND_OF_NAME[name]} | {FILES[name]} |" for name in beside)
    yield "\nThe name of a `.snapshot` is the next offset after its knowledge. In local tiered storage, a segment's"
    yield "files have its id between offset and extension: `00000000000000000000-oAtiIQ95REujbuzNd_lkLQ.log`."
    yield "[Buckets](../how-to/buckets.md) has the names of other tiers.\n"
    yield "| suffix of a file's name | the file |\n|---|---|"
    yield from (f"| `{suffix}` | {meaning} |" for suffix, meaning in SUFFIXES.items())
    yield "\n| directory | the partition |\n|---|---|\n| `TOPIC-PARTITION` | is in use |"
    yield from (f"| `TOPIC-PARTITION.UNIQUEID-{state}` | {STATES[state]} |" for state in DirectoryState)


def _name_rows(extension: str) -> str:
    if KIND_OF_EXTENSION[extension] is FileKind.METADATA_SNAPSHOT:
        return f"00000000000000000123-0000000001{extension}"
    return f"00000000000000000000{extension}"


def _text_files() -> Iterator[str]:
    yield "## Text files\n"
    yield "Text files have lines of UTF-8, with numbers in decimal. A broker writes checkpoints, `meta.properties` and"
    yield "`quorum-state` under another name, and renames the complete file."
    for kind, text_file in TEXT_FILES.items():
        names = [name for name, each in {**KIND_OF_NAME, **KIND_OF_EXTENSION}.items() if each is kind]
        yield f"\n### {' · '.join(f'`{name}`' for name in names)}\n"
        meanings = [f"line {number}: {text}" for number, text in enumerate(text_file.first_lines, 1)]
        rest = "each line" if not meanings else "each further line"
        if text_file.other_lines:
            meanings.append(f"{rest}: {_fields(text_file.other_lines)}")
        yield "; ".join(meanings)[:1].upper() + "; ".join(meanings)[1:] + ".\n"
        lines = (GOLDEN / SAMPLES[kind]).read_text(encoding="utf-8").splitlines()
        yield "\n".join(["```text", *lines[:_SHOWN_LINES], *(["…"] if len(lines) > _SHOWN_LINES else []), "```"])


def _fields(text: str) -> str:
    """Return the description of a line: names of fields in code, or words."""
    return text if text.startswith("a ") else f"`{text}`"


def _codecs() -> Iterator[str]:
    yield "\n## Codecs\n"
    yield "Bits 0-2 of a batch's attributes give the codec. It decides the framing of the records, or of a wrapper's"
    yield "value.\n"
    yield "| number | codec | since | framing |\n|---|---|---|---|"
    since = {Codec.LZ4: "0.8.2", **CODECS_SINCE}
    yield from (
        f"| {int(each)} | {each.name.lower()} | {since.get(each, '0.8')} | {CODEC_FRAMING[each]} |" for each in Codec
    )


def _topics() -> Iterator[str]:
    yield "\n## Records of internal topics\n"
    yield "Strings are UTF-8 after their size: an int16 or, in flexible versions, an unsigned varint with the size"
    yield "plus one. Lists begin with their count in the same way, an int32 or a varint. Flexible versions end with"
    yield "tagged fields. Each field has its type and, in brackets, its versions if some lack it; `?` may be null."
    for topic, (file, about) in TOPICS.items():
        yield f"\n### `{topic}`\n\n{about}\n"
        yield "| type | message | versions | flexible | fields |\n|---|---|---|---|---|"
        yield from map(_message_row, messages_in(file))


def _message_row(message: MessageSchema) -> str:
    fields = ", ".join(_field(field, message.versions) for field in message.fields)
    flexible = "" if message.flexible == "none" else message.flexible
    return f"| {message.api_key} | {message.name} | {message.versions} | {flexible} | {fields} |"


def _field(field: Field, versions: str) -> str:
    """Return a field, with the fields of a structure in braces."""
    is_always = field.versions in ("0+", versions)
    when = "" if is_always else f" ({field.versions})"
    null = "" if field.nullable == "none" else "?"
    inner = ", ".join(_field(each, versions) for each in field.fields)
    kind = f"{field.type}{null}" if not inner else f"{'[]' if field.type.startswith('[]') else ''}{{{inner}}}{null}"
    return f"{field.name} {kind}{when}"
