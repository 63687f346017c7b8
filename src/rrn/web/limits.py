"""Limits of requests and connections. Each refusal names its limit."""

BODY_BYTES = 128 * 1024
BODY_SECONDS = 10.0
"""Deadline for the body of a request to arrive."""
IDLE_SECONDS = 20.0
"""A connection without a request for this long is closed."""
SEND_SECONDS = 60.0
"""A connection whose client does not read the response for this long is closed."""
CHUNK_BYTES = 64 * 1024
"""Bytes of a response written at a time."""
CONNECTIONS = 512
CONNECTIONS_PER_ADDRESS = 128
REQUESTS_PER_ADDRESS = 64
"""Unfinished API requests of one address."""
UNFINISHED_PUZZLES = 256
"""Puzzles of all requests that are not finished."""

PUZZLES = 64
"""Puzzles per request."""
PUZZLE_CHARACTERS = 1_000
SUDOKU_STEPS = 256
ATTEMPTS = 9
PUZZLE_STEPS = 10_000
"""Puzzles of 9 × 9 × steps × attempts of one request: a few seconds of one core. Other sizes count by candidates."""
PROBABILITY_STEPS = 2_048
"""Puzzles of 9 × 9 × steps of one request for probabilities: a few megabytes. Other sizes count by candidates."""
SEARCH_GUESSES = 20_000
"""Guesses of the exact search that explains why a puzzle was not solved."""

STEPS = 64
"""Steps of the networks for bAbI, Pretty-CLEVR and ages."""
STORY_CHARACTERS = 4_000
FACTS = 20
"""Facts of a bAbI story."""
QUESTION_CHARACTERS = 200
LARGEST_SEED = 2**32 - 1
