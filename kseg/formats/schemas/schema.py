"""What Kafka's message schemas are made of: messages and their fields, with version ranges in Kafka's notation."""

from typing import NamedTuple

NULL = "null"
"""A field's default that stands for null, as in Kafka's schemas."""


class Field(NamedTuple):
    """A field of a message or of a structure in it."""

    name: str
    """As Kafka's JSON spells it."""
    type: str
    """`int32`, `string`, `[]string`, … or a structure's name, `[]` before it for a list."""
    versions: str
    """In which the field is there: `0+`, `1-3`, `2`, `none`."""
    nullable: str = "none"
    tag: int | None = None
    tagged: str = "none"
    """In which it stands among the tagged fields."""
    default: bool | int | str | None = None
    """None: the type's own (0, false, empty, the zero uuid, a structure of defaults); `NULL`: null."""
    flexible: str | None = None
    """Overrides the message's."""
    fields: "tuple[Field, ...]" = ()


class MessageSchema(NamedTuple):
    """A message: key or value of a coordinator's record, metadata record, request, response, header, or other data."""

    name: str
    kind: str
    """Kafka's: request, response, header, data, metadata, coordinator-key, coordinator-value."""
    api_key: int | None
    """Number of the request or record type."""
    versions: str
    """That can be read and written; `none` for requests that were given up."""
    flexible: str
    """In which lengths are compact and tagged fields are there."""
    fields: tuple[Field, ...]

    def __hash__(self) -> int:
        """The name's: messages are keys of caches, and hashing all fields each time would cost more than they save."""
        return hash(self.name)


class VersionRange(NamedTuple):
    """Versions from `first` to `last`, both included; empty if last is below first."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        """Whether a version lies in the range."""
        return isinstance(version, int) and self.first <= version <= self.last


def version_range(text: str) -> VersionRange:
    """The range that Kafka writes as `0-4`, `3+`, `2` or `none`."""
    if text == "none":
        return VersionRange(0, -1)
    if text.endswith("+"):
        return VersionRange(int(text[:-1]), 32767)
    first, _, last = text.partition("-")
    return VersionRange(int(first), int(last or first))
