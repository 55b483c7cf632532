"""What is on the screen of `kseg browse`: textual's part of it."""
