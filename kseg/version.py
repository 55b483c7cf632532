"""The version of kseg; the distribution's metadata takes it from here."""

VERSION = "0.1.0"
