"""Explains bytes: each field of a file with its place, bytes, value and meaning, as the grammars describe it."""

from kseg.explain.field import Bits, Check, Field
from kseg.explain.files import Item, explain_file

__all__ = ["Bits", "Check", "Field", "Item", "explain_file"]
