"""Explains bytes: each field of a file with its place, bytes, value and meaning, as the grammars describe it."""

from kseg.explain.field import Bits, Check, ExplainedField
from kseg.explain.items import Item, explain_file

__all__ = ["Bits", "Check", "ExplainedField", "Item", "explain_file"]
