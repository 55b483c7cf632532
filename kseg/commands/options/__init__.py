"""Options of commands: the table of all options, their types, and the decorator that makes commands of it."""
