"""Makes everything of a release in a directory: the same bytes from the same commit.

python tools/make_release.py build/release

The source distribution and the wheel, a self-contained tarball for Linux hosts without Python, a package for Debian,
the bill of materials and the licenses of all that both contain, and the SHA-256 of each file. Needs Debian or a
relative of it, since the shared libraries' licenses come from its packages.
"""

import argparse
import hashlib
import os
import platform
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from kseg.version import VERSION
from tools.make_dist import ROOT, make_source_distribution, make_wheel, time_of
from tools.release.bundle import make_bundle
from tools.release.inventory import write_bill, write_licenses
from tools.release.packages import make_debian_package, make_tarball, read_maintainer

SUMS = "SHA256SUMS"
NO_ADDRESS = (
    "pyproject.toml: the first author has no email, so the Debian package's maintainer has no address; add the email"
    " before you publish"
)


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("directory", type=Path, help="directory for the files; its present files are removed first")
    directory = parser.parse_args().directory.resolve()
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    os.umask(0o022)
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    make_release(directory, time_of(ROOT))
    print((directory / SUMS).read_text(encoding="utf-8"), end="")
    if "@" not in read_maintainer():
        print(NO_ADDRESS, file=sys.stderr)
    return 0


def make_release(directory: Path, time: int) -> None:
    """Make the files of a release in an empty directory. time: of all files in them, in seconds since 1970."""
    name = f"kseg-{VERSION}-linux-{platform.machine()}"
    make_source_distribution(ROOT, directory)
    wheel = make_wheel(directory)
    bill, licenses = directory / f"kseg-{VERSION}.cdx.json", directory / f"kseg-{VERSION}-licenses.txt"
    with TemporaryDirectory() as place:
        folder = Path(place) / name
        make_bundle(wheel, folder)
        write_bill(folder, bill, time)
        write_licenses(folder, bill, licenses)
        for path in (bill, licenses):
            shutil.copy(path, folder)
        make_tarball(folder, directory / f"{name}.tar.gz", time)
        make_debian_package(folder, licenses, directory / f"kseg_{VERSION}_amd64.deb", time)
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(directory.iterdir())]
    (directory / SUMS).write_text("".join(sums), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
