"""Judges `POST /completions` endpoints against the provider's own documents."""

__version__ = "0.1.0"
