"""The page and its API: ``rrn serve``. Imports the tasks; no task imports it."""
