"""What each release's DumpLogSegments printed, as data, and the compiler that makes kernel programs of it."""
