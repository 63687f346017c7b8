"""The web page and its API (``rrn serve``), and the static site (``make site``)."""
