"""Pictures: how a network reasons step by step on any graph, and plots."""

from rrn.viewing.viewing import Trace, animate, layout, plot_convergence, trace

__all__ = ["Trace", "animate", "layout", "plot_convergence", "trace"]
