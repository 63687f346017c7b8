"""The Sudoku network of Deep Graph Library's example ``rrn``, written anew in plain torch from its equations."""

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from rrn.nn.updates import State
from rrn.tasks.sudoku.grid import neighbours
from rrn.tasks.sudoku.model import PuzzleNetwork
from rrn.training.experiment import Batch

HIDDEN = 96


def _mlp(inputs: int) -> nn.Sequential:
    sizes = (inputs, HIDDEN, HIDDEN, HIDDEN)
    hidden = [part for size in sizes[:3] for part in (nn.Linear(size, HIDDEN), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(HIDDEN, HIDDEN))


class DGLSudoku(PuzzleNetwork):
    """Cells are nodes. Each receives from the 20 cells of its row, column and box, and from itself.

    The first layer of the message function is applied to sender and receiver separately, and its last layer to the sum
    of messages. Both are exact and save work; our networks do the same.
    """

    first_class = 1

    def __init__(self) -> None:
        super().__init__()
        self.digit_embed, self.row_embed, self.col_embed = (nn.Embedding(size, 16) for size in (10, 9, 9))
        self.input_layer = _mlp(48)
        self.message = _mlp(2 * HIDDEN)
        self.lstm = nn.LSTMCell(2 * HIDDEN, HIDDEN, bias=False)
        self.output_layer = nn.Linear(HIDDEN, 10)
        senders = torch.cat([torch.from_numpy(neighbours()), torch.arange(81)[:, None]], dim=1)
        self.register_buffer("senders", senders, persistent=False)

    @classmethod
    def from_file(cls, path: Path) -> "DGLSudoku":
        """The network with weights of a .safetensors file under the names of Deep Graph Library's example."""
        weights = {name.replace("rrn.rrn_layer.msg_layer", "message"): w for name, w in load_file(path).items()}
        network = cls()
        network.load_state_dict(weights)
        return network.eval()

    def features(self, puzzles: Tensor) -> Tensor:
        """Digits (n, 81) → x (n · 81, 96)."""
        cells = torch.arange(81)
        places = torch.cat([self.row_embed(cells // 9), self.col_embed(cells % 9)], dim=-1)
        x = torch.cat([self.digit_embed(puzzles), places.expand(len(puzzles), -1, -1)], dim=-1)
        encoded: Tensor = self.input_layer(x.flatten(0, 1))
        return encoded

    def messages(self, h: Tensor) -> Tensor:
        """The sum of the messages to every cell: (n · 81, 96) → (n · 81, 96)."""
        first, last = self.message[0], self.message[-1]
        from_sender, from_receiver = h @ first.weight[:, :HIDDEN].T, h @ first.weight[:, HIDDEN:].T + first.bias
        sent = from_sender.view(-1, 81, HIDDEN)[:, self.senders]
        total = self.message[1:-1](sent + from_receiver.view(-1, 81, 1, HIDDEN)).sum(2)
        return (total @ last.weight.T + self.senders.shape[1] * last.bias).flatten(0, 1)

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        x = self.features(batch["puzzle"])
        h, (hidden, cell) = State(x, (torch.zeros_like(x),) * 2) if state is None else state
        outputs = []
        for _ in range(steps):
            hidden, cell = self.lstm(torch.cat([x, self.messages(h)], dim=1), (hidden, cell))
            h = hidden
            outputs.append(self.output_layer(h))
        return torch.stack(outputs), State(h, (hidden, cell))

    def rows(self, batch: Batch) -> Tensor:
        return torch.full_like(batch["puzzle"][:, 0], 81)

    def initial_state(self, batch: Batch) -> State:
        x = self.features(batch["puzzle"])
        return State(x, (torch.zeros_like(x),) * 2)
