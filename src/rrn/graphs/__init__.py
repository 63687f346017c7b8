"""Graph layouts: which nodes send messages to which.

A graph offers two operations to the message function: the sum of both ends of every edge (`Graph.pair`), and the
aggregation of edge values at every node (`Graph.collect`). There are five layouts:

* `EdgeList`: any graph, as an ``edge_index`` of shape (2, E), row 0 the senders and row 1 the receivers. Several
  graphs of different sizes are batched as one graph of disjoint parts (`union`).
* `NeighbourTable`: graphs in which every node has the same number of senders. No scatter is needed.
* `CompleteGraphs`: complete graphs of equal size. No index is needed.
* `PackedGraphs`: complete graphs of different sizes; nodes are packed, only edges are padded.
* `Groups`: every node is in one group of each of several types and receives from all members of its groups.
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
