"""The apis that are answered: a module each, and the table of them."""
