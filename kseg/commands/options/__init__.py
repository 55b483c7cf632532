"""Options of commands: the table of all of them, their types, and the decorator that makes commands of it."""
