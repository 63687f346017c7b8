"""The shortest path through a maze: trained on small mazes, run with more steps on large ones.

Every open cell is a node; start and goal are marked. The target at each step is what breadth-first search knows then: a
wave from the start reaches one cell further per step, cells keep their distance modulo 3, and from the goal the path
is traced back. Each step is a rule between neighbours, the same in mazes of any size. Run `python -m examples mazes`.
"""

import random

import numpy as np
import torch
from torch import Tensor

from rrn import RRN, every_step
from rrn.graphs import union

WALL, OPEN, START, GOAL, MOVES = 0, 1, 2, 3, ((-1, 0), (0, 1), (1, 0), (0, -1))
PHASES, CLASSES = 3, 7  # not reached; reached, by the distance modulo 3; on the path, by the distance modulo 3
Problem = tuple[np.ndarray, np.ndarray]  # cells (rows, columns), and whether each is on the path


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
            seen.add((row := row + a, column := column + b))
    return cells


def explore(cells: np.ndarray, start: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Each cell's distance from the start, -1 where there is no way, and the number of shortest ways, at most 2."""
    distance, ways, length = np.full(cells.shape, -1), np.zeros(cells.shape, dtype=int), 0
    distance[start], ways[start] = 0, 1
    while (distance == length).any():
        front, length = np.pad(np.where(distance == length, ways, 0), 1), length + 1
        arriving = sum(np.roll(front, move, (0, 1)) for move in MOVES)[1:-1, 1:-1]
        new = (arriving > 0) & (distance < 0) & (cells > 0)
        distance[new], ways[new] = length, arriving[new].clip(max=2)
    return distance, ways


def draw_problem(rooms: int, loops: float, moves: tuple[int, int], rng: random.Random) -> Problem:
    """A maze in which one shortest path, of so many moves, leads from the start to the goal."""
    cells = draw_walls(rooms, loops, rng)
    start = tuple(rng.choice(np.argwhere(cells)))
    distance, ways = explore(cells, start)
    goals = np.argwhere((ways == 1) & (distance >= moves[0]) & (distance <= moves[1]))
    if not len(goals):
        return draw_problem(rooms, loops, moves, rng)
    cell, path = tuple(rng.choice(goals)), distance == 0
    cells[start], cells[cell] = START, GOAL
    while cell != start:
        path[cell] = True
        cell = next(c for a, b in MOVES if distance[c := (cell[0] + a, cell[1] + b)] == distance[cell] - 1)
    return cells, path


def as_graph(cells: np.ndarray) -> tuple[Tensor, Tensor]:
    """Open cells as nodes: x is whether a cell is start or goal; edges lead to open neighbours."""
    rows, columns = np.nonzero(cells)
    numbers = np.full((len(cells) + 2, cells.shape[1] + 2), -1)
    numbers[rows + 1, columns + 1] = np.arange(len(rows))
    receivers = np.stack([numbers[rows + 1 + a, columns + 1 + b] for a, b in MOVES])
    moves, senders = np.nonzero(receivers >= 0)
    x = np.stack([cells[rows, columns] == START, cells[rows, columns] == GOAL], axis=1).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(np.stack([senders, receivers[moves, senders]]))


def join(problems: list[Problem]) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor]:
    """Some mazes as one graph, the maze of each node, and whether it is on the path."""
    x, edge_index, batch = union([as_graph(cells) for cells, _ in problems])
    return (x, edge_index), batch, torch.from_numpy(np.concatenate([path[cells > 0] for cells, path in problems]))


def search_steps(cells: np.ndarray, path: np.ndarray, steps: range) -> np.ndarray:
    """The class of every open cell after each of the steps of breadth-first search and tracing back: (steps, nodes)."""
    distance = explore(cells, tuple(np.argwhere(cells == START)[0]))[0][cells > 0]
    step, moves, on_path = np.array(steps)[:, None], path.sum() - 1, path[cells > 0]
    return (step > distance) * (1 + distance % PHASES) + PHASES * (on_path & (step > 2 * moves + 1 - distance))


def all_right(outputs: Tensor, batch: Tensor, path: Tensor) -> Tensor:
    """Whether every cell of each maze is right: (mazes,)."""
    return torch.bincount(batch, (outputs.argmax(-1) > PHASES) != path) == 0


def train(updates: int, most_rooms: int = 5, seed: int = 0) -> RRN:
    """Half of the batches continue from noisy states deep in a run, so that no error grows and answers stay."""
    rng, _ = random.Random(seed), torch.manual_seed(seed)
    network = RRN(2, 32, CLASSES, update="gru", aggregate=("max",))
    optimizer = torch.optim.AdamW(network.parameters(), betas=(0.9, 0.98))
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = 2e-3 * min(1, (update + 1) / 100, 2 * (1 - update / updates))
        rooms, state = rng.randint(2, most_rooms), None
        problems = [draw_problem(rooms, rng.choice((0, 0.1, 0.2, 0.3)), (1, 40), rng) for _ in range(16)]
        inputs, last = join(problems)[0], 2 * max(int(path.sum()) for _, path in problems)
        if first := rng.choice((0, rng.randint(1, 2 * last))):
            with torch.no_grad():
                state = network.run(*inputs, steps=first)[1].map(lambda part: part + 0.1 * torch.randn_like(part))
        outputs, _ = network.run(*inputs, steps=(steps := min(last + 4, 24)), state=state)
        known = [search_steps(*problem, range(first + 1, first + steps + 1)) for problem in problems]
        loss = every_step(outputs, torch.from_numpy(np.concatenate(known, axis=1)))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    return network.eval()


def main(updates: int = 600, mazes: int = 50) -> dict[str, float]:
    rng = random.Random(1)
    inputs, batch, path = join([draw_problem(14, 0.1, (30, 120), rng) for _ in range(mazes)])
    outputs = train(updates)(*inputs, steps=256).detach()
    return {f"{n} steps": all_right(outputs[n - 1], batch, path).float().mean().item() for n in (64, 128, 256)}
