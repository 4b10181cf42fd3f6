"""What a program can ask of its runtime: timelines, counters, explanations, measurements."""
