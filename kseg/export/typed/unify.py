"""One type for columns of several schemas, after the rules by which Avro resolves a writer's schema by a reader's."""

from collections.abc import Sequence
from dataclasses import replace

from kseg.errors import KsegError
from kseg.export.typed.column_type import (
    ColumnMember,
    ColumnType,
    DecimalType,
    ListType,
    MapType,
    Scalar,
    StructType,
    UnionType,
    shown,
)

_Members = Sequence[ColumnMember]

_WIDER = {
    frozenset({Scalar.LONG, Scalar.FLOAT}): Scalar.DOUBLE,
    frozenset({Scalar.LONG, Scalar.DOUBLE}): Scalar.DOUBLE,
    frozenset({Scalar.FLOAT, Scalar.DOUBLE}): Scalar.DOUBLE,
    frozenset({Scalar.STRING, Scalar.BYTES}): Scalar.BYTES,
}
"""What both of two types become. A long and a float become a double: a float would lose more."""


class MismatchError(KsegError):
    """Two types that can't be one column. field: where, from the value on; empty for the value itself."""

    def __init__(self, field: str, new: ColumnType, old: ColumnType) -> None:
        self.field, self.new, self.old = field, new, old
        super().__init__(f"{f'field {field}' if field else 'the value'} is {shown(new)}, not {shown(old)}")


def unified(old: ColumnType, new: ColumnType, field: str = "") -> ColumnType:
    """The type that has room for both. Fields keep the name under which they came first.

    Raises MismatchError if there is none.
    """
    match old, new:
        case _ if old == new:
            return old
        case UnionType(), UnionType():
            return UnionType(_joined(old.members, new.members, field))
        case UnionType(), _:
            return _with_member(old, new)
        case _, UnionType():
            return _with_member(new, old)
        case Scalar(), Scalar() if frozenset({old, new}) in _WIDER:
            return _WIDER[frozenset({old, new})]
        case DecimalType(), DecimalType() if old.scale == new.scale:
            return DecimalType(max(old.precision, new.precision), old.scale)
        case ListType(), ListType():
            return ListType(unified(old.item, new.item, f"{field}[]"))
        case MapType(), MapType() if old.key == new.key:
            return MapType(old.key, unified(old.value, new.value, f"{field}[]"))
        case StructType(), StructType() if not old.names or not new.names or set(old.names) & set(new.names):
            names = tuple(dict.fromkeys((*old.names, *new.names)))
            return StructType(_joined(old.members, new.members, field), names)
        case _:
            raise MismatchError(field, new, old)


def _joined(old: Sequence[ColumnMember], new: Sequence[ColumnMember], field: str) -> tuple[ColumnMember, ...]:
    """The members of both: those of one name, or of an alias, once."""
    found = list(old)
    taken: set[str] = set()
    for member in new:
        place = f"{field}.{member.name}" if field else member.name
        match = partner(member, found)
        if match is None:
            found.append(member)
            continue
        if match.name in taken:
            raise MismatchError(place, member.type, match.type)
        taken.add(match.name)
        aliases = tuple(name for name in dict.fromkeys((*match.names, *member.names)) if name != match.name)
        joined = replace(match, type=unified(match.type, member.type, place), aliases=aliases)
        found[found.index(match)] = joined
    return tuple(found)


def partner(member: ColumnMember, others: Sequence[ColumnMember]) -> ColumnMember | None:
    """Which of others is the same: that of the same name, or else one that shares a name or alias; None if none is."""
    same = next((other for other in others if other.name == member.name), None)
    return same or next((other for other in others if set(other.names) & set(member.names)), None)


def _with_member(union: UnionType, own: ColumnType) -> UnionType:
    """The union with room for a type that it may have already."""
    if place_in(union, own) is not None:
        return union
    name = own.names[0] if isinstance(own, StructType) and own.names else shown(own)
    same = next((member for member in union.members if member.name == name), None)
    if same is None:
        return UnionType((*union.members, ColumnMember(name, own)))
    return UnionType(_joined(union.members, [ColumnMember(name, own)], ""))


def place_in(union: UnionType, own: ColumnType) -> int | None:
    """Which member of a union has room for all values of a type: the first; None if none has."""
    for place, member in enumerate(union.members):
        if holds(member.type, own):
            return place
    return None


def holds(wide: ColumnType, own: ColumnType) -> bool:
    """Whether a type has room for all values of another one."""
    try:
        return unified(wide, own) == wide
    except MismatchError:
        return False


def unlike(written: ColumnType, wanted: ColumnType, field: str = "") -> MismatchError | None:
    """Why files with the first type and files with the second can't be read as one table; None if they can.

    Fields may be added, and a float or a decimal become wider: that is what readers and table formats know.
    """
    match written, wanted:
        case _ if written == wanted or (written, wanted) == (Scalar.FLOAT, Scalar.DOUBLE):
            return None
        case DecimalType(), DecimalType() if written.scale == wanted.scale and written.precision <= wanted.precision:
            return None
        case ListType(), ListType():
            return unlike(written.item, wanted.item, f"{field}[]")
        case MapType(), MapType() if written.key == wanted.key:
            return unlike(written.value, wanted.value, f"{field}[]")
        case StructType(), StructType():
            return _unlike_members(written.members, wanted.members, field)
        case UnionType(), UnionType():
            return _unlike_members(written.members, wanted.members, field)
        case _:
            return MismatchError(field, wanted, written)


def _unlike_members(
    written: Sequence[ColumnMember], wanted: Sequence[ColumnMember], field: str
) -> MismatchError | None:
    by_name = {member.name: member for member in wanted}
    for member in written:
        place = f"{field}.{member.name}" if field else member.name
        found = unlike(member.type, by_name[member.name].type, place)
        if found is not None:
            return found
    return None
