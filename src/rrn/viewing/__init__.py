"""Pictures of a network's steps on any graph: probabilities, and the messages that changed them.

    record = record_steps(network, x, edge_index, batch=batch)
    animate(record, "steps.gif", graph=0)                     # or .svg, which needs no further package
    plot_convergence(record, "convergence.png", targets)

`animate` and `plot_convergence` return the picture, as a notebook shows it. A GIF and plots need the extra
``figures``; a layout without given positions needs the extra ``graphs`` (networkx).
"""

from rrn.viewing.animation import animate, layout
from rrn.viewing.plots import plot_convergence
from rrn.viewing.trace import Record, record_steps

__all__ = ["Record", "animate", "layout", "plot_convergence", "record_steps"]
