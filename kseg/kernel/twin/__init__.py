"""The Python twin of the compiled kernel."""
