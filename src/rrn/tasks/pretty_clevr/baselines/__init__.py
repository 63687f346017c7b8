"""What the paper compares its Pretty-CLEVR network with; its relational network is that network with one step."""
