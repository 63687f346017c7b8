"""Our networks and those of others on other people's problems: ``python -m benchmarks.peers``."""
