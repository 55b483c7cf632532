"""The commands: options to a library call to output, one module each."""
