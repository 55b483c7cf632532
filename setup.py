"""Writes a part of the compiled kernel before Cython reads it; pyproject.toml says everything else about the build."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent


class BuildKernel(build_ext):
    """Compiles the kernel, with the positions of the fields that kseg/formats/header_fields.py declares."""

    def run(self) -> None:
        """Writes the part, then compiles."""
        sys.path.insert(0, str(ROOT))  # builds run without the directory of the sources on the path
        from kseg.kernel.positions import write_positions

        write_positions(ROOT / "kseg" / "kernel" / "fast" / "positions.pxi")
        super().run()


setup(cmdclass={"build_ext": BuildKernel})
