"""Archives and standard input as files: unpacks what a command needs into a temporary directory."""
