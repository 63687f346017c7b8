"""The baselines of SALSA-CLRS with PyTorch Geometric: GIN(E), PGN and RecGNN. Hidden 128, max aggregation.

Each encodes the inputs, runs one convolution once per step on [inputs, state, state], and decodes [inputs, state, last
state] after exactly the true number of steps: pointers by a product of both ends, numbers by a mean over the nodes.
"""

import json
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn
from torch_geometric.nn import MLP, GINEConv, MessagePassing, global_mean_pool

from benchmarks.peers.salsa import Batch
from rrn.io.files import write_json

HIDDEN = 128
KINDS = ("gin", "pgn", "recgnn")
RATES = {"gin": 4.239e-4, "pgn": 4.239e-4, "recgnn": 8e-4}


class PointerGraphNetwork(MessagePassing):
    """relu(U z_i + V max_j MLP([z_j, z_i, e_ij]))."""

    def __init__(self, inputs: int, edge_features: int) -> None:
        super().__init__(aggr="max")
        self.mlp = MLP([2 * inputs + edge_features, HIDDEN, HIDDEN, HIDDEN], norm=None)
        self.own, self.received = nn.Linear(inputs, HIDDEN), nn.Linear(HIDDEN, HIDDEN)

    def forward(self, z: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        return (self.own(z) + self.received(self.propagate(edge_index, z=z, edge_attr=edge_attr))).relu()

    def message(self, z_i: Tensor, z_j: Tensor, edge_attr: Tensor) -> Tensor:
        return self.mlp(torch.cat([z_j, z_i, edge_attr], dim=-1))


class RecurrentConvolution(MessagePassing):
    """GRU(max_j MLP([z_j, z_i, e_ij]), h_i)."""

    def __init__(self, inputs: int, edge_features: int) -> None:
        super().__init__(aggr="max")
        self.mlp = MLP([2 * inputs + edge_features, inputs, inputs], norm="batch_norm", plain_last=False, act=None)
        self.cell = nn.GRUCell(inputs, HIDDEN)

    def forward(self, z: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        return self.cell(self.propagate(edge_index, z=z, edge_attr=edge_attr), z[:, -HIDDEN:])

    def message(self, z_i: Tensor, z_j: Tensor, edge_attr: Tensor) -> Tensor:
        return self.mlp(torch.cat([z_j, z_i, edge_attr], dim=-1))


class Baseline(nn.Module):
    def __init__(self, kind: str, edge_features: int, pointers: bool) -> None:
        super().__init__()
        self.settings: dict[str, Any] = {"kind": kind, "edge_features": edge_features, "pointers": pointers}
        self.kind, self.pointers = kind, pointers
        self.encoder = nn.Linear(2, HIDDEN)
        if kind == "gin":
            mlp = MLP([3 * HIDDEN, HIDDEN, HIDDEN], norm="batch_norm", plain_last=False, act="relu")
            self.convolution: nn.Module = GINEConv(mlp, train_eps=True, edge_dim=edge_features, aggr="max")
            self.cell = nn.GRUCell(HIDDEN, HIDDEN)
        else:
            convolution = PointerGraphNetwork if kind == "pgn" else RecurrentConvolution
            self.convolution = convolution(3 * HIDDEN, edge_features)
        self.norm = nn.LayerNorm(HIDDEN)
        outputs = 2 * 3 * HIDDEN if pointers else 1
        self.decoder = nn.Linear(3 * HIDDEN, outputs)

    def forward(self, graphs: Batch) -> Tensor:
        """Scores of the edges (edges, 1), or numbers (graphs, 1), of each graph after ``graphs.length`` steps."""
        x = self.encoder(graphs.x)
        hidden, final, due = x, torch.cat([x, x, x], dim=-1), graphs.length[graphs.batch]
        for step in range(1, int(graphs.length.max()) + 1):
            last = hidden
            z = torch.cat([x, hidden, last], dim=-1)
            hidden = self.norm(self.convolution(z, graphs.edge_index, graphs.edge_attr))
            if self.kind == "gin":
                hidden = self.cell(hidden, last)
            if bool((due == step).any()):
                final = torch.where((due == step)[:, None], torch.cat([x, hidden, last], dim=-1), final)
        decoded = self.decoder(final)
        if not self.pointers:
            return global_mean_pool(decoded, graphs.batch)
        source, target = decoded.chunk(2, dim=-1)
        return (source[graphs.edge_index[0]] * target[graphs.edge_index[1]]).sum(-1, keepdim=True)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        safetensors.torch.save_file(self.state_dict(), folder / "model.safetensors")
        write_json(folder / "config.json", self.settings)

    @classmethod
    def load(cls, folder: Path) -> "Baseline":
        model = cls(**json.loads((folder / "config.json").read_text()))
        model.load_state_dict(safetensors.torch.load_file(folder / "model.safetensors"))
        return model.eval()
