"""Files of an Iceberg table, which pyiceberg reaches only through the destination."""

import io
from collections.abc import Mapping
from typing import Any

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import FileIO, InputFile, OutputFile

from kseg.errors import KsegError, OpenError, counted
from kseg.export.destination import Destination

LARGEST_METADATA = 1 << 30
"""Of a file of metadata: pyiceberg reads it as a whole."""
_METADATA = "metadata/"
_PLACE, _URL = "kseg.place", "kseg.url"
"""The properties in which a catalog hands the destination to its files: pyiceberg makes them itself."""


def name_in(location: str, url: str) -> str:
    """The name of a file that lies below a URL. Raises KsegError if it doesn't."""
    name = location.removeprefix(f"{url}/")
    if name == location or any(part in ("", ".", "..") for part in name.split("/")):
        raise KsegError(f"the table names {location}, which isn't in it; choose another place", url)
    return name


def with_files_of(place: Destination, url: str, catalog: Any) -> Any:
    """The catalog, whose tables' files are those of the destination at a URL, whatever properties the tables have.

    pyiceberg's own clients of stores have other settings, and need libraries of their own. A table's own properties may
    name other files, which are code.
    """
    own = f"{PlaceFiles.__module__}.{PlaceFiles.__name__}"
    catalog.properties.update({"py-io-impl": own, _PLACE: place, _URL: url})
    catalog._load_file_io = lambda properties=(), location=None: PlaceFiles(catalog.properties)
    return catalog


def catalog_in(path: str, url: str, place: Destination) -> Any:
    """A catalog in an SQLite file."""
    return with_files_of(place, url, SqlCatalog("kseg", uri=f"sqlite:///{path}", warehouse=url))


class PlaceFiles(FileIO):
    """The files of a destination by their URLs."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        super().__init__(dict(properties))
        self._place: Destination = properties[_PLACE]
        self._url: str = properties[_URL]

    def new_input(self, location: str) -> "PlaceFile":
        """A file to read."""
        return PlaceFile(location, name_in(location, self._url), self._place)

    def new_output(self, location: str) -> "PlaceFile":
        """A file to write."""
        return self.new_input(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Removes a file."""
        where = location if isinstance(location, str) else str(location.location)
        self._place.delete(name_in(where, self._url))


class PlaceFile(InputFile, OutputFile):
    """A file of a destination."""

    def __init__(self, location: str, name: str, place: Destination) -> None:
        super().__init__(location)
        self._name, self._place = name, place

    def __len__(self) -> int:
        return self._place.size(self._name) or 0

    def exists(self) -> bool:
        """Whether it is there."""
        return self._place.size(self._name) is not None

    def open(self, seekable: bool = True) -> Any:
        """The file to read. Raises FileNotFoundError if it isn't there, as pyiceberg expects."""
        if self._name.startswith(_METADATA) and len(self) > LARGEST_METADATA:
            why = (
                f"has {counted(len(self), 'byte')}; kseg reads metadata of up to {LARGEST_METADATA}; choose"
                " another place"
            )
            raise KsegError(why, self.location)
        try:
            return self._place.open(self._name)
        except OpenError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise FileNotFoundError(error.one_line()) from error
            raise

    def create(self, overwrite: bool = False) -> "_NewFile":
        """A new file: each has a name of its own, so none is ever overwritten."""
        return _NewFile(self._name, self._place)

    def to_input_file(self) -> "PlaceFile":
        """The same to read."""
        return self


class _NewFile(io.BytesIO):
    """Bytes of metadata, which are written when they are complete."""

    def __init__(self, name: str, place: Destination) -> None:
        super().__init__()
        self._name, self._place = name, place

    def close(self) -> None:
        """Writes the file."""
        if not self.closed:
            content = self.getvalue()
            super().close()
            with self._place.create(self._name) as file:
                file.write(content)
