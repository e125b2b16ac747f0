"""Verdicts → results.json, and from that alone, with the recorded exchanges, everything that people read."""
