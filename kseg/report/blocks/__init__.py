"""The blocks of a report: each makes verdicts, pictures and tables of what was gathered."""
