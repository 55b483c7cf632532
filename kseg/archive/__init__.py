"""Archives and standard input as files: what a command needs of them is unpacked into a temporary directory."""
