"""Types of options, such as numbers, sizes and partitions; callbacks of paths and of options about all output."""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from kseg.errors import UsageError, plural
from kseg.formats.file_names import MAXIMUM_PARTITION, parse_partition_directory
from kseg.store.location import checked_path, matching_paths

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from kseg.export.undecoded import UndecodedLimit
    from kseg.log.freeing import Share

LARGEST_INT = 2**31 - 1
LARGEST_LONG = 2**63 - 1
_UNITS: dict[str, int] = {
    "": 1,
    **{unit: 1000**power for power, unit in enumerate("KMGT", 1)},
    **{f"{unit}I": 1024**power for power, unit in enumerate("KMGT", 1)},
}


class Number(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """A whole number in decimal digits, from `least` to `most`."""

    name = "N"

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number; fail if it is invalid or out of bounds."""
        text = str(value)
        if not re.fullmatch("[+-]?[0-9]{1,25}", text) or not self.least <= int(text) <= self.most:
            self.fail(f"{text!r} isn't a whole number from {self.least} to {self.most}", param, ctx)
        return int(text)


def int_number(least: int = 0) -> Number:
    """Return the type of an int in Kafka: sizes, counts, epochs."""
    return Number(least, LARGEST_INT)


def long_number(least: int = 0) -> Number:
    """Return the type of a long in Kafka: offsets, times, ids."""
    return Number(least, LARGEST_LONG)


ANY_LONG = long_number(-LARGEST_LONG - 1)
"""Type for damaged logs, whose batches may have any offset."""


class Size(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """Bytes from `least` to `most`: a number with an optional unit B, KB, MB, GB, TB, KiB, MiB, GiB or TiB."""

    name = "SIZE"

    def __init__(self, least: int = 1, most: int = LARGEST_LONG) -> None:
        self.least, self.most = least, most

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes; fail if the value is invalid or out of bounds."""
        match = re.fullmatch(r"([+-]?[0-9]{1,25}) ?([KMGT]I?|)B?", str(value).upper())
        size = None if match is None else int(match[1]) * _UNITS[match[2]]
        if size is None or not self.least <= size <= self.most:
            bounds = f"from {size_text(self.least)} to {size_text(self.most)}"
            self.fail(f"{str(value)!r} isn't a size {bounds}; specify bytes, 64MB or 1GiB", param, ctx)
        return size


class SizeOrAuto(Size):
    """Bytes as in Size, or `auto` for None: kseg finds the size."""

    name = "SIZE|auto"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | None:  # type: ignore[override]
        """Return the bytes, or None; fail if the value is neither."""
        return None if value == "auto" else super().convert(value, param, ctx)


class SizeOrShare(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # as Size
    """Bytes as in Size, or a share: `20%`, `disk:20%` or `logs:20%`."""

    name = "SIZE|PERCENT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> "int | Share":
        """Return the bytes or the share; fail if the value is neither."""
        from kseg.log.freeing import Share, ShareOf

        share = re.fullmatch(r"(?:(disk|logs):)?([1-9][0-9]?)%", str(value))
        if share is None:
            return Size().convert(value, param, ctx)
        return Share(int(share[2]), None if share[1] is None else ShareOf(share[1]))


class NumberOrPercent(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # as Size
    """A number of undecoded keys or values, or a percentage of all: `0`, `1%`, `0.5%`."""

    name = "N|PERCENT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> "UndecodedLimit":
        """Return the limit; fail if the value is neither."""
        from kseg.export.undecoded import UndecodedLimit

        if isinstance(value, UndecodedLimit):
            return value
        match = re.fullmatch(r"([0-9]{1,15})|([0-9]{1,3}(?:\.[0-9]{1,9})?)%", str(value))
        if match is None or float(match[2] or 0) > 100:
            self.fail(f"{str(value)!r} isn't a number or a percentage; specify 0, 100 or 1%", param, ctx)
        return UndecodedLimit(float(match[1] or match[2]), is_share=match[2] is not None)


class Decimal(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """A number from `least` to `most`, perhaps with a fraction."""

    name = "N"

    def __init__(self, least: float, most: float) -> None:
        self.least, self.most = least, most

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; fail if it is invalid or out of bounds."""
        number = float("nan")
        with suppress(ValueError):
            number = float(str(value))
        if not self.least <= number <= self.most:
            self.fail(f"{str(value)!r} isn't a number from {self.least:g} to {self.most:g}", param, ctx)
        return number


def size_text(size: int) -> str:
    """Return a size in the exact form that `Size` takes: `1GiB`, or bytes."""
    for unit in ("TI", "GI", "MI", "KI"):
        count, rest = divmod(size, _UNITS[unit])
        if size > 0 and not rest:
            return f"{count}{unit[0]}iB"
    return str(size)


class Folders(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """Fields that divide files into folders, separated by commas; `none` for none."""

    name = "FIELDS"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Return the spellings of the fields; fail if one can't be a field."""
        from kseg.export.partition_fields import parse_fields

        try:
            return parse_fields(str(value))
        except ValueError as error:
            self.fail(
                f"{value!r}: {error}; specify `none`, or fields such as topic, dt, hour, bucket(16) or value.country",
                param,
                ctx,
            )


class ParquetCompression(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """A codec of Parquet files, perhaps with a level: `zstd:9`."""

    name = "CODEC[:LEVEL]"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return codec and level; fail if there is no such codec, or if it doesn't have such a level."""
        codec, colon, level = str(value).partition(":")
        levels = _PARQUET_LEVELS.get(codec)
        if levels is None:
            self.fail(f"{codec!r} isn't one of {', '.join(_PARQUET_LEVELS)}", param, ctx)
        if colon and not (level.isascii() and level.isdigit() and len(level) <= 2 and int(level) in levels):
            bounds = f"levels from {levels[0]} to {levels[-1]}" if levels else "no levels"
            self.fail(f"{value!r}: {codec} has {bounds}", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        """Return the codecs."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(codec) for codec in _PARQUET_LEVELS if codec.startswith(incomplete)]


_PARQUET_LEVELS = MappingProxyType(
    {"zstd": range(1, 23), "snappy": range(0), "gzip": range(1, 10), "lz4": range(1, 13), "none": range(0)}
)


class HostAndPort(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """HOST:PORT, an IPv6 address in brackets."""

    name = "HOST:PORT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """Return host and port; fail if one is missing or invalid."""
        if isinstance(value, tuple):
            return value
        from kseg.system.addresses import parse_address

        address = parse_address(str(value))
        if address is None:
            self.fail(f"{value!r} isn't HOST:PORT, such as 127.0.0.1:9092 or [::1]:9092", param, ctx)
        return address


class HostsAndPorts(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """Addresses, separated by commas."""

    name = "HOST:PORT,…"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[tuple[str, int], ...]:
        """Return hosts and ports; fail if one is missing or invalid."""
        from kseg.system.addresses import parse_addresses

        try:
            return parse_addresses(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)


class NewPath(click.Path):
    """A path to write to, which isn't `-`. Source: click."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        if value == "-":
            self.fail("kseg can't write this to standard output; name a path, or write ./-", param, ctx)
        return super().convert(value, param, ctx)


class Setting(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """NAME=VALUE."""

    name = "NAME=VALUE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Name and value."""
        name, equals, text = str(value).partition("=")
        if not equals:
            self.fail(f"{value!r} isn't NAME=VALUE", param, ctx)
        return name, text


class CarvedName(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """CHAIN=TOPIC-PARTITION: a carved partition, and its name."""

    name = "CHAIN=TOPIC-N"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Return the carved name without `-0`, and the new one; fail if that is no partition's."""
        if isinstance(value, tuple):
            return value
        chain, _, name = str(value).partition("=")
        found = parse_partition_directory(name)
        if not chain or found is None or name != f"{found.topic}-{found.partition}":
            self.fail(f"{value!r} isn't CHAIN=TOPIC-PARTITION, such as carved-0001=orders-0", param, ctx)
        return chain.removesuffix("-0"), name


class KeyFile(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """ID=FILE: a key's id, and the file that holds it."""

    name = "ID=FILE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Path]:
        """Return the id and the file path."""
        if isinstance(value, tuple):
            return value
        key_id, equals, path = str(value).partition("=")
        if not equals or not key_id or not path:
            self.fail(f"{value!r} isn't ID=FILE, such as key1=private.pem", param, ctx)
        return key_id, Path(path)


class PartitionNumbers(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """Numbers of partitions and ranges of them, separated by commas: `0,4-7`."""

    name = "N,…"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[range, ...]:
        """Return the ranges; fail if one is invalid."""
        return tuple(self._numbers(text, param, ctx) for text in str(value).split(","))

    def _numbers(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> range:
        match = re.fullmatch("([0-9]{1,10})(?:-([0-9]{1,10}))?", text.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last <= MAXIMUM_PARTITION:
            self.fail(f"{text!r} is neither a partition number nor a range such as 0-3", param, ctx)
        return range(first, last + 1)


def all_matching(_: object, __: object, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths that the given paths or globs match. Raises UsageError for a wrong URL."""
    return tuple(path for text in texts for path in matching_paths(checked_path(text)))


def paths_of(command: object, argument: object, texts: tuple[str, ...]) -> tuple[Path, ...]:
    """Return the same as an object of Paths."""
    return tuple(map(Path, all_matching(command, argument, texts)))


def paths_or_here(command: object, argument: object, texts: tuple[str, ...]) -> tuple[Path, ...]:
    """Return the same; by default the current directory."""
    return paths_of(command, argument, texts) or (Path(),)


def only_match(_: object, __: object, text: str | None) -> Path | None:
    """Return the path, or the only match of a glob. Raises UsageError for several matches."""
    if text is None:
        return None
    found = matching_paths(text)
    if len(found) > 1:
        raise UsageError(f"matches {plural(len(found), 'path')}; specify one of them", text)
    return Path(found[0])


def all_ranges(_: object, __: object, given: tuple[tuple[range, ...], ...]) -> tuple[range, ...]:
    """Return the ranges of an option that may be repeated, as one tuple."""
    return tuple(each for ranges in given for each in ranges)


def unless_stdout(_: object, __: object, path: Path | None) -> Path | None:
    """Return the path of an output file; None for `-`, standard output."""
    return None if path == Path("-") else path


def properties_in(_: object, __: object, path: Path | None) -> Mapping[str, str]:
    """Read a broker's server.properties: the settings by their names."""
    from kseg.cluster.settings import NO_SETTINGS, read_server_properties

    return NO_SETTINGS if path is None else read_server_properties(path)


def let_through(_: object, __: object, wanted: bool) -> bool:
    """Stop escaping control characters on a terminal."""
    if wanted:
        from kseg.output.streams import let_contents_through

        let_contents_through()
    return wanted


def tell_at_the_end(context: click.Context, _: object, wanted: bool) -> bool:
    """Report the run's time and memory at the end of the command."""
    if wanted and not context.resilient_parsing:
        from kseg.output.progress import talk
        from kseg.system.run_usage import Usage

        usage = Usage()
        context.call_on_close(lambda: talk(f"kseg: {usage.line()}"))
    return wanted
