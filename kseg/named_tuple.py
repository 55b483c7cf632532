"""Named tuples for modules that many starts import: their classes cost a fraction of those of `typing`.

`typing.NamedTuple` compiles a constructor for each class, and checks each annotation: a third of the instructions that
the import of kseg's own modules takes. Here, classes share one constructor. Type checkers see `typing.NamedTuple`.
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.version_info >= (3, 14):  # from 3.14 on, the body of a class has no annotations yet
    from typing import NamedTuple as NamedTuple
else:
    from collections import _tuplegetter

    class _FieldReader(type):
        """Makes the annotations of a class its fields."""

        def __new__(cls, name, bases, body):
            fields = tuple(body.get("__annotations__", ()))
            if fields:
                defaults = {field: body[field] for field in fields if field in body}
                body |= {field: _tuplegetter(index, None) for index, field in enumerate(fields)}
                body |= {"__slots__": (), "__match_args__": fields, "_fields": fields, "_field_defaults": defaults}
                body |= {"_required": len(fields) - len(defaults), "_defaults": tuple(defaults.values())}
            return super().__new__(cls, name, bases, body)

    class NamedTuple(tuple, metaclass=_FieldReader):
        """The methods of `typing.NamedTuple`."""

        __slots__ = ()

        def __new__(cls, /, *values, **named):  # noqa: D102
            if named or len(values) != len(cls._fields):
                values = cls._arrange(values, named)
            return tuple.__new__(cls, values)

        @classmethod
        def _arrange(cls, values, named):
            """Return the values of all fields in order. Raises TypeError for wrong arguments."""
            fields, required = cls._fields, cls._required
            if not named and required <= len(values) < len(fields):
                return values + cls._defaults[len(values) - required :]
            try:
                values += tuple(map(named.pop, fields[len(values) : required]))
            except KeyError as error:
                raise TypeError(f"{cls.__name__}: no value for the field {error}; specify one") from None
            values += tuple(map(named.pop, fields[len(values) :], cls._defaults[len(values) - required :]))
            if named or len(values) != len(fields):
                raise TypeError(f"{cls.__name__}: too many values; specify some of {', '.join(fields)}, each once")
            return values

        @classmethod
        def _make(cls, values):
            return cls(*values)

        def _replace(self, /, **named):
            values = tuple(map(named.pop, self._fields, self))
            return type(self)(*values, **named)

        __replace__ = _replace

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            return f"{type(self).__name__}({', '.join(map('{}={!r}'.format, self._fields, self))})"

        def __getnewargs__(self):
            return tuple(self)
