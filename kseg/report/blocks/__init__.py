"""The blocks of a report: each turns the gathered facts into verdicts, pictures and tables."""
