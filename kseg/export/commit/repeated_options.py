"""Options that each run into a destination repeats, since they decide about the rows and columns of its table.

The others may change from run to run: how files are written, where schemas are, and what happens at damage.
"""

from kseg.export.settings import FileOptions, ReadOptions


def describe_differences(made: tuple[ReadOptions, FileOptions], given: tuple[ReadOptions, FileOptions]) -> list[str]:
    """Return the options with which an export was made, as far as those of another run differ."""
    own, other = _by_name(*made), _by_name(*given)
    return [_text(name, value) for name, value in own.items() if value != other[name]]


def _by_name(read: ReadOptions, files: FileOptions) -> dict[str, object]:
    """Return the options under their names; a tuple has a value that can't be shown."""
    decode, latest = read.decode, read.latest_per_key
    return {
        "--unwrap": None if read.unwrap is None else "debezium",
        "--history": read.unwrap is not None and read.unwrap.history,
        "--partition-by": ",".join(files.partition_by) or "none",
        "--sort-by": ",".join(files.sort_by) or None,
        "--headers": "map" if read.has_header_maps else "list",
        "--no-headers": not read.headers,
        "--batch-columns": read.batch_columns,
        "--isolation": read.isolation.value,
        "--control": read.control,
        "--latest-per-key": latest is not None,
        "--tombstones": latest and latest.value,
        "the options that select records": (read.selected._replace(is_control=None),),
        "--redact and --redact-key": (read.redaction,),
        "--key-decoder": decode.key,
        "--value-decoder": decode.value,
        "--decoded": "typed and a schema" if decode.typed_parts() else "text",
        "--keep-raw": decode.keep_raw.value,
        "--flatten": decode.is_flat,
        "--drop raw": decode.drops_raw,
        "--dead-letter": read.undecoded_only,
    }


def _text(name: str, value: object) -> str:
    if isinstance(value, tuple):
        return f"other values of {name}"
    if isinstance(value, str):
        return f"{name} {value}"
    return name if value else f"no {name}"
