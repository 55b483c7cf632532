"""What checks can find: kinds of findings with their risk and next step, and findings as values."""
