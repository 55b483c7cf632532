"""The commands, one module each: options become a library call, and its results become output."""
