"""The one error a user is meant to read."""


class InputError(ValueError):
    """Something a caller handed over is not usable. The message names it and says what would be."""


class NotFiniteError(InputError):
    """Numbers that should be finite are NaN or infinite."""
