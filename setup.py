"""Writes a part of the compiled kernel before Cython reads it; pyproject.toml says everything else about the build."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent


class BuildKernel(build_ext):
    """Compiles the kernel, with the numbers and fields that kseg declares in Python."""

    def run(self) -> None:
        """Writes the part, then compiles."""
        sys.path.insert(0, str(ROOT))  # builds run without the directory of the sources on the path
        from kseg.kernel.declarations import write_declarations

        write_declarations(ROOT / "kseg" / "kernel" / "fast" / "declarations.pxi")
        super().run()


setup(cmdclass={"build_ext": BuildKernel})
