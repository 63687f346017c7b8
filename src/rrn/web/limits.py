"""What a request may ask for. Each refusal names its cap."""

BODY_BYTES = 128 * 1024
BODY_SECONDS = 10.0
"""A body that takes longer to arrive is given up."""
IDLE_SECONDS = 20.0
"""A connection that has not sent the head of its next request by then is closed."""
SEND_SECONDS = 60.0
"""An answer that its client has not taken by then is thrown away, with the connection."""
PIECE_BYTES = 64 * 1024
"""Of an answer handed to the network at a time."""
CONNECTIONS = 512
PER_ADDRESS = 24
"""Requests of one address that may wait or be answered at a time."""

PUZZLES = 64
"""Puzzles per request."""
PUZZLE_CHARACTERS = 1_000
SUDOKU_STEPS = 256
RESTARTS = 8
PUZZLE_STEPS = 10_000
"""Puzzles × steps × starts of one request: some seconds of one core."""
PROBABILITY_STEPS = 2_048
"""Puzzles × steps of one request for probabilities, which fill some megabytes."""
SEARCH_GUESSES = 20_000
"""Guesses an exact search may make to say why a puzzle was not solved."""

STEPS = 64
"""Steps of the small networks."""
STORY_CHARACTERS = 4_000
FACTS = 20
"""Facts of a bAbI story."""
QUESTION_CHARACTERS = 200
LARGEST_SEED = 2**32 - 1
