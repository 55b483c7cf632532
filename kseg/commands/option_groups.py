"""Groups of options: partitions, selections, decoders, settings."""

import re
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from kseg.commands.options import (
    ANY_LONG,
    LARGEST_INT,
    Command,
    Ratio,
    Size,
    long_number,
    option_values,
    size_text,
    zone_option,
)
from kseg.formats.codes import (
    DEDUPE_BUFFER_SIZE,
    DELETE_RETENTION_MS,
    INDEX_INTERVAL_BYTES,
    MAX_COMPACTION_LAG_MS,
    MAXIMUM_TRANSACTION_MS,
    MIN_CLEANABLE_DIRTY_RATIO,
    PRODUCER_EXPIRATION_MS,
    RETENTION_MS,
    SEGMENT_BYTES,
    SEGMENT_INDEX_BYTES,
    SEGMENT_MS,
    UNLIMITED,
)
from kseg.formats.file_names import MAXIMUM_PARTITION
from kseg.log.selection import PartitionChoice

if TYPE_CHECKING:
    from kseg.log.selection import IsolationLevel, Selection


_NUMBERS = re.compile("([0-9]{1,10})(?:-([0-9]{1,10}))?")


class PartitionNumbers(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """Numbers of partitions and ranges of them, separated by commas: `0,4-7`."""

    name = "N,…"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[range, ...]:
        """The ranges; fails if one isn't any."""
        return tuple(self._numbers(text, param, ctx) for text in str(value).split(","))

    def _numbers(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> range:
        match = _NUMBERS.fullmatch(text.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last <= MAXIMUM_PARTITION:
            self.fail(f"{text!r} is neither a partition's number nor a range such as 0-3", param, ctx)
        return range(first, last + 1)


def partition_options(command: Command) -> Command:
    """`--topic` and `--partition`; the command gets them as one PartitionChoice, `choice`."""

    @click.option(
        "--topic",
        "topics",
        multiple=True,
        metavar="NAME|GLOB",
        help="Only this topic, or those that match, 'ord*' for example; may be repeated.",
    )
    @click.option(
        "--partition",
        "numbers",
        type=PartitionNumbers(),
        multiple=True,
        metavar="N,…",
        help="Only partitions with these numbers: 3, or 0,4-7.",
    )
    @wraps(command)
    def choosing(*arguments: Any, **options: Any) -> Any:
        return command(*arguments, choice=partition_choice_of(options), **options)

    return cast(Command, choosing)


def partition_choice_of(options: dict[str, Any]) -> PartitionChoice:
    """The choice that the options describe; removes them from `options`."""
    numbers = options.pop("numbers")
    return PartitionChoice(options.pop("topics"), tuple(each for given in numbers for each in given))


_SELECTION_OPTIONS = {
    "from_offset": click.option("--from-offset", type=ANY_LONG, metavar="OFFSET", help="Records from this offset on."),
    "to_offset": click.option("--to-offset", type=ANY_LONG, metavar="OFFSET", help="Records before this offset."),
    "from_time": click.option(
        "--from-time", metavar="TIME", help="Records with this time or a later one: ISO 8601, milliseconds, -1h, now."
    ),
    "to_time": click.option("--to-time", metavar="TIME", help="Records with an earlier time than this."),
    "key": click.option("--key", metavar="KEY", help="Records with this key: text, hex:… or base64:…."),
    "key_regex": click.option("--key-regex", metavar="REGEX", help="Records with a match in the key."),
    "grep": click.option("--grep", metavar="REGEX", help="Records with a match in the value."),
    "headers": click.option(
        "--header",
        "headers",
        multiple=True,
        metavar="NAME[=VALUE]",
        help="Records with this header, with any value or this one (as for --key); may be repeated.",
    ),
    "producer_id": click.option("--producer-id", type=long_number(-1), metavar="ID", help="Records of this producer."),
    "transactional_only": click.option("--transactional-only", is_flag=True, help="Of transactions."),
    "is_control": click.option(
        "--control/--no-control", "is_control", default=None, help="Only control records; or none of them."
    ),
    "isolation": click.option(
        "--isolation",
        type=click.Choice(["read_uncommitted", "read_committed"]),
        default="read_uncommitted",
        show_default=True,
        help="read_committed: no aborted or control records, nothing from the last stable offset on.",
    ),
    "limit": click.option("--limit", type=long_number(), metavar="N", help="Only the first N."),
    "tail": click.option("--tail", type=long_number(), metavar="N", help="Only the last N of each partition."),
    "sample": click.option(
        "--sample", metavar="SHARE", help="About this share of the records, 0.01 or 1%; the same ones each time."
    ),
    "is_followed": click.option(
        "--follow", "is_followed", is_flag=True, help="Wait for more records, also in new segments; Ctrl-C stops it."
    ),
    "zone": zone_option,
}
"""The options that select records, by the fields of GivenSelection."""


class GivenSelection(NamedTuple):
    """The options that select records; a command's without those that mean nothing there."""

    from_offset: int | None = None
    to_offset: int | None = None
    from_time: str | None = None
    to_time: str | None = None
    key: str | None = None
    key_regex: str | None = None
    grep: str | None = None
    headers: tuple[str, ...] = ()
    producer_id: int | None = None
    transactional_only: bool = False
    is_control: bool | None = None
    isolation: "IsolationLevel" = "read_uncommitted"
    limit: int | None = None
    tail: int | None = None
    sample: str | None = None
    is_followed: bool = False
    zone: str = "UTC"

    def selection(self) -> "Selection":
        """The selection that they describe. Raises UsageError for wrong ones."""
        from kseg.log.selection import selection_of

        return selection_of(
            {
                "from_offset": self.from_offset,
                "to_offset": self.to_offset,
                "from_time": self.from_time,
                "to_time": self.to_time,
                "key": self.key,
                "key_regex": self.key_regex,
                "grep": self.grep,
                "header": self.headers,
                "producer_id": self.producer_id,
                "transactional_only": self.transactional_only,
                "control": self.is_control,
                "isolation": self.isolation,
                "limit": self.limit,
                "tail": self.tail,
                "sample": self.sample,
                "tz": self.zone,
            }
        )._replace(is_followed=self.is_followed)


def is_followed(options: Mapping[str, Any]) -> bool:
    """Whether a command's options ask for more records than are there now."""
    selected = options.get("selected")
    return isinstance(selected, GivenSelection) and selected.is_followed


def selection_options(*left_out: str) -> Callable[[Command], Command]:
    """`--from-offset` … `--follow`, `--tz`: which records; the command gets them as one GivenSelection, `selected`.

    left_out: parameters that mean nothing there.
    """

    def decorate(command: Command) -> Command:
        command = option_values(selected=GivenSelection)(command)
        for name, option in reversed(_SELECTION_OPTIONS.items()):
            if name not in left_out:
                command = option(command)
        return command

    return decorate


_FILE = click.Path(path_type=Path)
_OPTIONS = (
    click.option("--key-decoder", metavar="NAME", help="What decodes keys, as below, or a Kafka class."),
    click.option("--value-decoder", metavar="NAME", help="What decodes values."),
    click.option("--schema", type=_FILE, help="Avro schema, map of ids to schemas, or Protobuf descriptor set."),
    click.option("--message", metavar="NAME", help="Full name of the Protobuf message."),
    click.option(
        "--schema-registry", type=_FILE, help="Directory of the _schemas partition, to rebuild a registry from."
    ),
)


def decoder_options(command: Command) -> Command:
    """`--key-decoder` … `--schema-registry`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class _Setting(NamedTuple):
    """What an option takes, without any, and says."""

    type: "click.ParamType[Any]"
    default: object
    meaning: str


SETTINGS = {
    "retention.ms": _Setting(long_number(-1), RETENTION_MS, "for how long records are kept; -1 for ever"),
    "retention.bytes": _Setting(Size(-1), UNLIMITED, "how much of a partition is kept; -1 for all"),
    "segment.bytes": _Setting(Size(1, LARGEST_INT), size_text(SEGMENT_BYTES), "the size at which segments roll"),
    "segment.ms": _Setting(long_number(1), SEGMENT_MS, "the time after which segments roll"),
    "segment.index.bytes": _Setting(
        Size(12, LARGEST_INT), size_text(SEGMENT_INDEX_BYTES), "the size of indexes at which segments roll"
    ),
    "index.interval.bytes": _Setting(
        Size(0, LARGEST_INT), size_text(INDEX_INTERVAL_BYTES), "the bytes between index entries"
    ),
    "delete.retention.ms": _Setting(long_number(), DELETE_RETENTION_MS, "for how long tombstones and markers stay"),
    "min.compaction.lag.ms": _Setting(long_number(), 0, "how old records are at least"),
    "max.compaction.lag.ms": _Setting(
        long_number(1), MAX_COMPACTION_LAG_MS, "how old records become before they are cleaned at any dirty ratio"
    ),
    "min.cleanable.dirty.ratio": _Setting(
        Ratio(), MIN_CLEANABLE_DIRTY_RATIO, "the dirty ratio from which on a partition is cleaned"
    ),
    "log.cleaner.dedupe.buffer.size": _Setting(
        Size(48), size_text(DEDUPE_BUFFER_SIZE), "memory of the offset map, 24 bytes a key; more keys take more passes"
    ),
    "producer.id.expiration.ms": _Setting(
        long_number(1), PRODUCER_EXPIRATION_MS, "for how long the last batch of an idle producer is kept"
    ),
    "transaction.max.timeout.ms": _Setting(
        long_number(), MAXIMUM_TRANSACTION_MS, "a transaction with a younger last record doesn't hang"
    ),
}
"""By Kafka's names of them."""


def setting_options(*names: str, **own: Any) -> Callable[[Command], Command]:
    """An option for each of these settings; `own` is what click is to be told otherwise."""

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            setting = SETTINGS[name]
            told = {
                "type": setting.type,
                "default": setting.default,
                "show_default": True,
                "help": f"As {name}: {setting.meaning}.",
            }
            command = click.option(option_of(name), **{**told, **own})(command)
        return command

    return decorate


def option_of(name: str) -> str:
    """The option for a setting."""
    return f"--{name.replace('.', '-')}"
