"""Files of an Iceberg table, which pyiceberg reaches only through the destination."""

import io
from collections.abc import Mapping
from typing import Any

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import FileIO, InputFile, OutputFile

from kseg.errors import KsegError, OpenError, plural
from kseg.export.destination import Destination

LARGEST_METADATA = 1 << 30
"""The most bytes of a metadata file, which pyiceberg reads in one piece."""
_METADATA = "metadata/"
_PLACE, _URL = "kseg.place", "kseg.url"
"""Properties in which a catalog passes the destination to its file objects, which pyiceberg constructs."""


def name_in(location: str, url: str) -> str:
    """Return the name of a file relative to a URL. Raises KsegError if it isn't below the URL."""
    name = location.removeprefix(f"{url}/")
    if name == location or any(part in ("", ".", "..") for part in name.split("/")):
        raise KsegError(f"the table names {location}, which isn't in it; choose another destination", url)
    return name


def with_files_of(place: Destination, url: str, catalog: Any) -> Any:
    """Configure a catalog to store its tables at the destination URL.

    pyiceberg's own clients of stores have other settings, and need libraries of their own. A table's properties may
    name another implementation, which is code.
    """
    own = f"{PlaceFiles.__module__}.{PlaceFiles.__name__}"
    catalog.properties.update({"py-io-impl": own, _PLACE: place, _URL: url})
    catalog._load_file_io = lambda properties=(), location=None: PlaceFiles(catalog.properties)
    return catalog


def catalog_in(path: str, name: str, url: str, place: Destination) -> Any:
    """Open the catalog with a name that is stored in an SQLite file."""
    return with_files_of(place, url, SqlCatalog(name, uri=f"sqlite:///{path}", warehouse=url))


class PlaceFiles(FileIO):
    """Provides pyiceberg with the files of a destination."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        super().__init__(dict(properties))
        self._place: Destination = properties[_PLACE]
        self._url: str = properties[_URL]

    def new_input(self, location: str) -> "PlaceFile":
        """Return a file to read."""
        return PlaceFile(location, name_in(location, self._url), self._place)

    def new_output(self, location: str) -> "PlaceFile":
        """Return a file to write."""
        return self.new_input(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Remove a file."""
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
        """Return True if the file exists."""
        return self._place.size(self._name) is not None

    def open(self, seekable: bool = True) -> Any:
        """Open the file for reading. Raises FileNotFoundError if it is missing, as pyiceberg expects."""
        if self._name.startswith(_METADATA) and len(self) > LARGEST_METADATA:
            why = (
                f"the metadata has {plural(len(self), 'byte')}, more than kseg's limit of {LARGEST_METADATA} bytes;"
                " choose another destination"
            )
            raise KsegError(why, self.location)
        try:
            return self._place.open(self._name)
        except OpenError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise FileNotFoundError(error.one_line()) from error
            raise

    def create(self, overwrite: bool = False) -> "_NewFile":
        """Return a new file. Each has a unique name, so none is ever overwritten."""
        return _NewFile(self._name, self._place)

    def to_input_file(self) -> "PlaceFile":
        """Return the same file for reading."""
        return self


class _NewFile(io.BytesIO):
    """The buffer for a metadata file, which is written when it is complete."""

    def __init__(self, name: str, place: Destination) -> None:
        super().__init__()
        self._name, self._place = name, place

    def close(self) -> None:
        """Write the file."""
        if not self.closed:
            content = self.getvalue()
            super().close()
            with self._place.create(self._name) as file:
                file.write(content)
