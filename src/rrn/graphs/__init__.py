"""Graphs: who sends messages to whom.

A graph answers two questions, and only these, for the message function: *what do the two ends of every edge add up
to* (`Graph.pair`) and *what arrives at every node* (`Graph.collect`). Five layouts answer them:

* `EdgeList`: any graph, as an ``edge_index`` of shape (2, E), row 0 the senders and row 1 the receivers. Several
  graphs of different sizes are batched as one graph of disjoint parts (`union`).
* `NeighbourTable`: graphs in which every node hears from the same number of neighbours. No scatter is needed.
* `CompleteGraphs`: equally large graphs in which everybody hears everybody. No index is needed at all.
* `PackedGraphs`: the same for graphs of different sizes; nodes are packed, only edges are padded.
* `Groups`: every node stands in one group of each of several kinds and hears from all members of its groups.
"""

from rrn.graphs.base import Aggregate, Graph, Part, SortedEdges
from rrn.graphs.convert import complete_edges, from_networkx, from_pyg, neighbour_edges, union
from rrn.graphs.groups import Groups
from rrn.graphs.layouts import CompleteGraphs, EdgeList, NeighbourTable, PackedGraphs

__all__ = [
    "Aggregate",
    "CompleteGraphs",
    "EdgeList",
    "Graph",
    "Groups",
    "NeighbourTable",
    "PackedGraphs",
    "Part",
    "SortedEdges",
    "complete_edges",
    "from_networkx",
    "from_pyg",
    "neighbour_edges",
    "union",
]
