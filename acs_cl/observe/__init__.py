"""Answers about a runtime: timelines, counters, explanations and measurements."""
