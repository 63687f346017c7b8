"""The parts of a recurrent relational network: messages, updates, readouts, layers, and the loss at every step."""
