"""A fuzzer that knows the formats: mutants of real files with right lengths and CRCs, so that deep code reads them.

`make fuzz` runs it. A case is a directory of files, made from a seed and a number alone. `properties` states what must
hold for any case; failing cases are minimized and kept in `tests/found/`, whose files `tests/test_found.py` reads
again.
"""
