"""The lines of each release's DumpLogSegments as data, and the compiler to kernel programs."""
