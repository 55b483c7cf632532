"""Builds the kernel anew; all that is configured is in pyproject.toml."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext


class BuildKernel(build_ext):
    """Without what an earlier build left: where the compiler fails now, that would be installed instead of nothing."""

    def run(self) -> None:
        """Removes the old kernel from the build's directory, and builds."""
        for old in Path(self.build_lib, "kseg", "kernel").glob("fast.*"):
            if old.suffix in (".so", ".pyd"):
                old.unlink()
        super().run()


setup(cmdclass={"build_ext": BuildKernel})
