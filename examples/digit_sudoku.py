"""Sudokus of photographs: a convolutional network reads the digits, the RRN behind it solves, both learn as one.

The givens of a 4 × 4 Sudoku are 8 × 8 images of handwritten digits (scikit-learn's). What is trained on is the
digits of the *empty* cells alone: no image ever comes with a label, so which of them are fours the network has to
find out from what is missing beside them. Tested with images and with solutions that training never showed.

    python examples/digit_sudoku.py      # needs scikit-learn, which the extra 'dev' brings
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from rrn import RRN, NeighbourTable
from rrn.nn.losses import every_step
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.grid import neighbours

BOX, CELLS = (2, 2), 16


class DigitSudoku(nn.Module):
    """Images of cells (puzzles · 16, 1, 8, 8), all zero where empty → logits (steps, puzzles · 16, 4)."""

    def __init__(self, hidden: int = 64) -> None:
        super().__init__()
        self.read = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.2),
            nn.Linear(128, 16),
        )
        self.reason = RRN(features=16, hidden=hidden, outputs=4)

    def forward(self, images: Tensor, *, steps: int) -> Tensor:
        graph = NeighbourTable.repeat(torch.from_numpy(neighbours(BOX)), len(images) // CELLS)
        return self.reason(self.read(images), graph, steps=steps)


def load_images(test: bool) -> list[Tensor]:
    """The images of 1, 2, 3 and 4; every fifth is for testing. Labels serve to draw puzzles, never to train."""
    digits = load_digits()
    images = torch.from_numpy(digits.images).float()[:, None] / 16
    of_digit = [images[torch.from_numpy(digits.target == digit)] for digit in range(1, 5)]
    return [each[(torch.arange(len(each)) % 5 == 0) == test] for each in of_digit]


def make_puzzles(count: int, extra: int, test: bool, seed: int) -> tuple[Tensor, Tensor]:
    """Puzzles and solutions (n, 16); the 288 solutions there are, are split by a sum over their cells."""
    puzzles, solutions = (
        torch.from_numpy(a).long() for a in generate(count, np.random.default_rng(seed), extra, box=BOX)
    )
    held_out = (solutions * torch.arange(CELLS) ** 2).sum(1) % 5 == 0
    return puzzles[held_out == test], solutions[held_out == test]


def draw(puzzles: Tensor, images: list[Tensor], generator: torch.Generator) -> Tensor:
    """An image for every given, nothing for empty cells: (n, 16) → (n · 16, 1, 8, 8)."""
    cells = puzzles.flatten()
    drawn = torch.zeros(len(cells), 1, 8, 8)
    for digit, pool in enumerate(images, start=1):
        places = (cells == digit).nonzero()[:, 0]
        drawn[places] = pool[torch.randint(len(pool), (len(places),), generator=generator)]
    return drawn


def train(updates: int, steps: int = 8, batch_size: int = 64, extra: range = range(7), seed: int = 0) -> DigitSudoku:
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    images, sets = load_images(test=False), [make_puzzles(4000, more, False, seed + more) for more in extra]
    puzzles, solutions = (torch.cat(parts) for parts in zip(*sets, strict=True))
    network = DigitSudoku()
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, updates)
    for update in range(updates):
        rows = torch.randint(len(puzzles), (batch_size,), generator=generator)
        empty = puzzles[rows].flatten() == 0
        outputs = network(draw(puzzles[rows], images, generator), steps=steps)
        loss = every_step(outputs[:, empty], solutions[rows].flatten()[empty] - 1)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if update % 100 == 0:
            print(f"update {update:5}  loss {loss.item():.4f}", flush=True)
    return network.eval()


@torch.inference_mode()
def evaluate(network: DigitSudoku, count: int, extra: int, steps: int = 16, seed: int = 100) -> dict[str, float]:
    puzzles, solutions = make_puzzles(count, extra, True, seed)
    images = draw(puzzles, load_images(test=True), torch.Generator().manual_seed(seed))
    answers = network(images, steps=steps)[-1].argmax(-1).view(-1, CELLS) + 1
    right = (answers == solutions) | (puzzles > 0)
    return {"n": len(puzzles), "solved": right.all(1).double().mean().item()}


def main(updates: int = 900, count: int = 5000) -> dict[str, dict[str, float]]:
    network = train(updates)
    return {f"{extra} extra givens": evaluate(network, count, extra) for extra in (0, 2, 4)}


if __name__ == "__main__":
    torch.set_num_threads(1)  # the graphs are small, and other programs may use the cores
    print(main())
