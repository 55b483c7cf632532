"""The screen of `kseg browse` in textual."""
