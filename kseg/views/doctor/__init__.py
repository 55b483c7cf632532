"""What is wrong with a broker's directories, the worst first, and what to do about it."""
