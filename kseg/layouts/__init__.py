"""The lines of each release's DumpLogSegments, as data, and the compiler that turns them into kernel programs."""
