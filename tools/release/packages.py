"""Packages of the self-contained folder: a tarball, and a package for Debian. The same folder gives the same bytes."""

import gzip
import shutil
import tarfile
import tomllib
from pathlib import Path

from tools.make_dist import ROOT, run
from tools.release.bundle import oldest_c_library

CONTROL = """Package: kseg
Version: {version}
Architecture: amd64
Section: admin
Priority: optional
Maintainer: {maintainer}
Installed-Size: {size}
Depends: libc6 (>= {c_library})
Description: Read, check and repair Apache Kafka's files on disk
 kseg prints, checks, repairs, restores and exports the files of Kafka's
 brokers, without a broker or Java. The package contains the Python and the
 libraries that it needs.
"""
SHARED = {
    "man": "man",
    "bash-completion": "bash-completion",
    "zsh/site-functions": "zsh/vendor-completions",
    "fish": "fish",
}
"""Folders of share/, and their places below /usr/share in Debian."""


def read_maintainer() -> str:
    """Return the first author in pyproject.toml: the name, and in angle brackets the address, if it is there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    author: dict[str, str] = project["authors"][0]
    return f"{author['name']} <{author['email']}>" if "email" in author else author["name"]


def make_tarball(folder: Path, target: Path, time: int) -> None:
    """Write the folder as target, under its own name."""
    with (
        target.open("wb") as file,
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in (folder, *sorted(folder.rglob("*"))):
            archive.add(
                path, path.relative_to(folder.parent), recursive=False, filter=lambda member: _clean(member, time)
            )


def _clean(member: tarfile.TarInfo, time: int) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = time
    member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    return member


def make_debian_package(folder: Path, licenses: Path, target: Path, time: int) -> None:
    """Write the package: the folder in /usr/lib/kseg, `kseg` in /usr/bin, man pages, and completion."""
    tree = folder.parent / "debian"
    own, documents = tree / "usr" / "lib" / "kseg", tree / "usr" / "share" / "doc" / "kseg"
    shutil.copytree(folder, own, ignore=lambda place, _: ["share"] if Path(place) == folder else [])
    for source, place in SHARED.items():
        shutil.copytree(folder / "share" / source, tree / "usr" / "share" / place)
    for page in (tree / "usr" / "share" / "man").rglob("*.1"):
        page.with_name(f"{page.name}.gz").write_bytes(gzip.compress(page.read_bytes(), mtime=0))
        page.unlink()
    documents.mkdir(parents=True)
    shutil.copy(licenses, documents / "copyright")
    (documents / "changelog.gz").write_bytes(gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), mtime=0))
    (tree / "usr" / "bin").mkdir()
    (tree / "usr" / "bin" / "kseg").symlink_to("../lib/kseg/bin/kseg")
    size = sum(path.stat().st_size for path in tree.rglob("*") if not path.is_symlink())
    control = tree / "DEBIAN" / "control"
    control.parent.mkdir()
    fields = {
        "version": target.name.split("_")[1],
        "maintainer": read_maintainer(),
        "size": size // 1024,
        "c_library": oldest_c_library(folder),
    }
    control.write_text(CONTROL.format(**fields), encoding="utf-8")
    command = ["dpkg-deb", "--root-owner-group", "-Zxz", "-z3", "--build", str(tree), str(target)]
    run(command, folder.parent, {"SOURCE_DATE_EPOCH": str(time)})
    shutil.rmtree(tree)
