"""The path through a maze: trained on small mazes, run with more steps on large ones.

Every open cell is a node; start and goal are marked. The answer is which cells are on the shortest path, which is
unique. Without cycles it is enough to fill dead ends, a cell per step. With cycles the edges also know their direction.
`python -m examples mazes` trains and measures it.
"""

import random

import numpy as np
import torch
from torch import Tensor

from rrn import RRN
from rrn.graphs import union
from rrn.nn.losses import step_losses

WALL, OPEN, START, GOAL, MOVES = 0, 1, 2, 3, ((-1, 0), (0, 1), (1, 0), (0, -1))
Problem = tuple[np.ndarray, np.ndarray]


def draw_walls(rooms: int, loops: float, rng: random.Random) -> np.ndarray:
    """A maze of 2 · rooms + 1 cells a side; ``loops`` is the share of the walls between rooms that are opened."""
    cells = np.zeros((2 * rooms + 1, 2 * rooms + 1), dtype=np.uint8)
    cells[1:-1, 1:-1] = np.random.default_rng(rng.randrange(1 << 32)).random((2 * rooms - 1, 2 * rooms - 1)) < loops
    cells[::2, ::2], cells[1::2, 1::2] = WALL, OPEN
    row, column, seen = 0, 0, {(0, 0)}
    while len(seen) < rooms**2:  # a random walk opens the wall to every room that it has not seen
        a, b = rng.choice(MOVES)
        if 0 <= row + a < rooms and 0 <= column + b < rooms:
            cells[2 * row + 1 + a, 2 * column + 1 + b] |= (row + a, column + b) not in seen
            row, column = row + a, column + b
            seen.add((row, column))
    return cells


def draw_problem(rooms: int, loops: float, moves: tuple[int, int], rng: random.Random) -> Problem:
    """A maze in which one shortest path, of so many moves, leads from the start to the goal: (cells, path)."""
    cells = draw_walls(rooms, loops, rng).ravel()
    opened, offsets = np.flatnonzero(cells), (-2 * rooms - 1, 1, 2 * rooms + 1, -1)
    start = int(rng.choice(opened))
    ways, distance = np.zeros(len(cells)), np.full(len(cells), -1)
    ways[start], distance[start] = 1, 0
    for length in range(1, moves[1] + 1):
        front = np.where(distance == length - 1, ways, 0)
        arriving = sum(front[opened + offset] for offset in offsets)
        new = (arriving > 0) & (distance[opened] < 0)
        ways[opened[new]], distance[opened[new]] = arriving[new].clip(max=2), length
    goals = np.flatnonzero((ways == 1) & (distance >= moves[0]))
    if not len(goals):
        return draw_problem(rooms, loops, moves, rng)
    path, goal = distance == 0, int(rng.choice(goals))
    cells[start], cells[goal], cell = START, GOAL, goal
    while cell != start:
        path[cell] = True
        cell = next(cell + offset for offset in offsets if distance[cell + offset] == distance[cell] - 1)
    return cells.reshape(2 * rooms + 1, -1), path.reshape(2 * rooms + 1, -1)


def as_graph(cells: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
    """Open cells as nodes: x is whether a cell is start or goal, edge_attr the direction of an edge."""
    rows, columns = np.nonzero(cells)
    numbers = np.full((len(cells) + 2, cells.shape[1] + 2), -1)
    numbers[rows + 1, columns + 1] = np.arange(len(rows))
    receivers = np.stack([numbers[rows + 1 + a, columns + 1 + b] for a, b in MOVES])
    directions, senders = np.nonzero(receivers >= 0)
    x = np.stack([cells[rows, columns] == START, cells[rows, columns] == GOAL], axis=1).astype(np.float32)
    edge_index, edge_attr = np.stack([senders, receivers[directions, senders]]), np.eye(4, dtype=np.float32)[directions]
    return torch.from_numpy(x), torch.from_numpy(edge_index), torch.from_numpy(edge_attr)


def join(problems: list[Problem], network: RRN) -> tuple[list[Tensor], Tensor, Tensor]:
    """The network's inputs for some mazes as one graph, the maze of each node, and whether it is on the path."""
    *inputs, batch = union([as_graph(cells) for cells, _ in problems])
    path = torch.from_numpy(np.concatenate([path[cells > 0] for cells, path in problems])).long()
    return inputs if network.edge_features else inputs[:2], batch, path


def all_right(outputs: Tensor, batch: Tensor, path: Tensor) -> Tensor:
    """Whether every cell of each maze is right: (mazes,)."""
    return batch.new_zeros(int(batch[-1]) + 1).index_add(0, batch, (outputs.argmax(-1) != path).long()) == 0


def train(cycles: bool, updates: int, most_rooms: int = 6, seed: int = 0, network: RRN | None = None) -> RRN:
    """Small mazes first. A third of the batches continue from states deep in a run, so that answers stay."""
    torch.manual_seed(seed)
    rng, rooms, solved = random.Random(seed), 2.0 if network is None else most_rooms, 0.0
    more = {"edge_features": 4, "aggregate": ("max",)} if cycles else {}
    network = network or RRN(2, 64 if cycles else 32, 2, update="gru", **more)
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, betas=(0.9, 0.98))
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = 3e-3 * min(1, (update + 1) / 100, 2 * (1 - update / updates))
        size, loops = int(rooms), (0, 0.1, 0.2, 0.3) if cycles else (0,)
        draw = [(rng.randint(max(2, size - 1), size), rng.choice(loops), (2, 12 * size), rng) for _ in range(16)]
        inputs, batch, path = join([draw_problem(*each) for each in draw], network)
        first = rng.choice((0, 0, rng.randint(1, 8 * size)))
        steps = 10 if first else rng.randint(4 * size, 4 * size + 8) * (1 + cycles)
        with torch.no_grad():
            state = network.run(*inputs, steps=first)[1] if first else None
        outputs, _ = network.run(*inputs, steps=steps, state=state)
        weights = torch.ones(steps) if first else torch.linspace(0, 1, steps) ** 2  # late steps count most
        loss = (step_losses(outputs, path) * weights).sum() / weights.sum()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        if not first:
            solved += 0.05 * (all_right(outputs[-1], batch, path).float().mean().item() - solved)
            rooms = min(most_rooms + 0.9, rooms + 0.03 * (solved > 0.9))
        if update % 100 == 0:
            print(f"update {update:5}  loss {loss.item():.4f}  solved {solved:.3f}  rooms {rooms:.1f}", flush=True)
    return network.eval()


def main(updates: int = 800, mazes: int = 50) -> dict[str, float]:
    network, rng = train(False, updates), random.Random(1)
    inputs, batch, path = join([draw_problem(14, 0.0, (30, 150), rng) for _ in range(mazes)], network)
    with torch.inference_mode():
        outputs = network(*inputs, steps=128)
    return {f"{n} steps": all_right(outputs[n - 1], batch, path).float().mean().item() for n in (32, 64, 128)}
