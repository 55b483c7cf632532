"""Which options each release's tool has, and its messages about old names of decoder classes."""

from kseg.releases import Release, Since, value_in

INTERNAL_DECODERS = (
    "offsets-decoder",
    "transaction-log-decoder",
    "cluster-metadata-decoder",
    "remote-log-metadata-decoder",
    "share-group-state-decoder",
)
"""Options of internal topics' decoders; if several are given, Kafka uses the first of these."""

OPTION_RELEASES: dict[str, tuple[str, tuple[int, ...]]] = {
    "index_sanity_check": ("--index-sanity-check", (0, 10)),
    "skip_record_metadata": ("--skip-record-metadata", (2, 8)),
    "max_bytes": ("--max-bytes", (3, 3)),
    "offsets-decoder": ("--offsets-decoder", (0, 9, 0, 1)),
    "transaction-log-decoder": ("--transaction-log-decoder", (0, 11)),
    "cluster-metadata-decoder": ("--cluster-metadata-decoder", (2, 8)),
    "remote-log-metadata-decoder": ("--remote-log-metadata-decoder", (3, 9)),
    "share-group-state-decoder": ("--share-group-state-decoder", (4, 0)),
}
"""Kafka's options that not every release has: their names, and since when."""

OLD_CLASS_PREFIX, CLASS_PREFIX = "kafka.serializer.", "org.apache.kafka.tools.api."
"""Packages of the decoder classes, up to 3.7 and from 3.8 on."""

NAMES_OLD_CLASSES: Since[bool] = (((0, 8), False), ((3, 8), True), ((4, 0), False))
"""Whether the tool prints a message if a class is given by its old name."""

_DEPRECATED_CLASS = "{old} is deprecated. Please use {new} instead"


def deprecated_class_lines(key_class: str | None, value_class: str | None, release: Release) -> list[str]:
    """What a release prints for each old class name, the value's first."""
    if not value_in(release, NAMES_OLD_CLASSES):
        return []
    old = [name for name in (value_class, key_class) if name is not None and name.startswith(OLD_CLASS_PREFIX)]
    return [_DEPRECATED_CLASS.format(old=name, new=CLASS_PREFIX + name.removeprefix(OLD_CLASS_PREFIX)) for name in old]
