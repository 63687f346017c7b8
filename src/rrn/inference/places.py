"""Places: a batch whose finished problems leave and whose new ones enter.

Some problems are done after three steps, others need a hundred. So each has a place, and as many rows of the state as
it has nodes; whoever is finished leaves, and the next in the queue enters with a fresh state. Solving, starts from
noise and training all work this way (`Places`). `think_through` is the loop for a network that is only asked, and
`RRN.think` is that loop for a batch of graphs.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from rrn.errors import InputError
from rrn.graphs import Graph
from rrn.nn.readouts import Outputs, answer_of
from rrn.nn.updates import State

if TYPE_CHECKING:
    from rrn.network import RRN, Prepared
    from rrn.training.tying import Ties

STRIDE = 8
"""Steps between two looks at the answers."""
NOISE = 0.3
NOISE_EVERY = 8
"""Steps from one dose of noise to the next. A network forgets what it starts from, so noise has to come on the way; in
the second half of a start there is none, so that it can settle."""


Noise = Callable[[State, Tensor, torch.Generator | None], State]
"""Adds noise of a standard deviation (rows, 1) to a state, as `rrn.nn.updates.Update.noisy` does."""


class Places(NamedTuple):
    """Who stands in which place: which problem, in which of its starts, with how many rows of the state, and how many
    steps it has had. All but the state are of shape (places,); the state's rows lie in the order of the places."""

    numbers: Tensor
    starts: Tensor
    sizes: Tensor
    age: Tensor
    state: State

    @classmethod
    def enter(cls, numbers: Tensor, sizes: Tensor, state: State, starts: Tensor | None = None) -> "Places":
        """Problems that have had no step yet."""
        starts = torch.ones_like(numbers) if starts is None else starts
        return cls(numbers, starts, sizes, torch.zeros_like(numbers), state)

    def who(self) -> list[tuple[int, int]]:
        """Which problem, in which of its starts, stands in each place."""
        return list(zip(self.numbers.tolist(), self.starts.tolist(), strict=True))

    def after(self, state: State, steps: int) -> "Places":
        return self._replace(state=state, age=self.age + steps)

    def leave(self, over: Tensor) -> "Places":
        """Without those that are over (places,)."""
        if not bool(over.any()):
            return self
        rows = (~over).repeat_interleave(self.sizes).nonzero()[:, 0].to(self.state.h.device)
        numbers, starts, sizes, age = (part[~over] for part in self[:4])
        return Places(numbers, starts, sizes, age, self.state.map(lambda part: part.index_select(0, rows)))

    def join(self, others: "Places") -> "Places":
        """With others in further places."""
        numbers, starts, sizes, age = (torch.cat(both) for both in zip(self[:4], others[:4], strict=True))
        state = State.of(torch.cat(both) for both in zip(self.state.parts(), others.state.parts(), strict=True))
        return Places(numbers, starts, sizes, age, state)

    def noisy(self, add_noise: Noise, amount: Tensor, generator: torch.Generator | None = None) -> "Places":
        """With noise of a standard deviation (places,) on what each problem has of the state."""
        noise = amount.repeat_interleave(self.sizes)[:, None].to(self.state.h)
        return self._replace(state=add_noise(self.state, noise, generator))


class Resumable(nn.Module, ABC):
    """A network that goes on from a state of which each problem of a batch, tensors by name, has rows of its own."""

    keeps_device = True
    """Batches are put where it is, so states stay there: see `rrn.inference.devices`."""

    @property
    def device(self) -> torch.device:
        """Where its weights are; the CPU if it has none."""
        return next((weight.device for weight in self.parameters()), torch.device("cpu"))

    def prepare(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """The batch with all that follows from its problems alone, derived once however often it is called."""
        return batch

    def rows(self, batch: dict[str, Tensor]) -> Tensor:
        """How many rows of the state each problem has: (n,)."""
        first = next(iter(batch.values()))
        return first.new_ones(len(first), dtype=torch.long)

    @abstractmethod
    def start(self, batch: dict[str, Tensor]) -> State:
        """The state before the first step."""

    def noisy(self, state: State, noise: Tensor, generator: torch.Generator | None = None) -> State:
        """The state with noise of a standard deviation (rows, 1) added."""
        return state

    def ties(self) -> list["Ties"]:
        """Which of its weights training keeps equal: see `rrn.training.tying`."""
        return []

    def treat_alike(self) -> None:
        """New weights, tied as `ties` says."""
        for tied in self.ties():
            tied.share()

    def widened(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The weights of a network of this kind, as this one has use for: it may be wider."""
        return weights


class Work(Protocol):
    """Problems, numbered from 0, and a network that works on some of them at a time."""

    @property
    def guide(self) -> "Guide | None":
        """Who says what becomes of the places; None: nobody."""

    def __len__(self) -> int: ...

    def begin(self, numbers: Tensor) -> tuple[Tensor, State]:
        """How many rows of the state each of these problems has, and the state at the start."""

    def run(self, places: Places, steps: int) -> tuple[Tensor | Outputs, State]:
        """Some steps for those who have a place."""

    def finished(self, places: Places, outputs: Any) -> Tensor:
        """Whether each problem is finished at each of the steps just run: (steps, places)."""

    def answer(self, places: Places, outputs: Any, place: int, step: int) -> Any:
        """What to keep of a problem that leaves its place after a step of those just run."""

    def noisy(self, state: State, noise: Tensor, generator: torch.Generator | None) -> State:
        """As `rrn.nn.updates.Update.noisy`."""


class BatchWork:
    """Problems as tensors by name, and a `Resumable` network, which is called with those that have a place, as `Work`.

    What else it is called with is ``told``.
    """

    guide: "Guide | None" = None

    def __init__(self, network: Resumable, batch: dict[str, Tensor], **told: Any) -> None:
        self.network, self.told, self.noisy = network, told, network.noisy
        self.batch = network.prepare({name: part.to(network.device) for name, part in batch.items()}, **told)

    def __len__(self) -> int:
        return len(next(iter(self.batch.values())))

    def begin(self, numbers: Tensor) -> tuple[Tensor, State]:
        batch = {name: part[numbers] for name, part in self.batch.items()}
        return self.network.rows(batch).cpu(), self.network.start(batch)

    def at_work(self, places: Places) -> dict[str, Tensor]:
        """The batch of those that have a place."""
        return {name: part[places.numbers] for name, part in self.batch.items()}

    def run(self, places: Places, steps: int) -> tuple[Any, State]:
        return self.network(self.at_work(places), steps=steps, state=places.state, **self.told)


@dataclass
class Found:
    """What `think_through` found for each of n problems, in their order.

    Attributes:
        answers: what `Work.answer` made of the step that counts: the one that finished it, or else the last one of the
            first start.
        finished: (n,) whether it was finished.
        steps: (n,) the steps of message passing it took, in the start that counts.
        starts: (n,) the start that finished it, 1 for the clean one; or else how many there were.
        first_answers: those of the clean start.
    """

    answers: list[Any]
    finished: Tensor
    steps: Tensor
    starts: Tensor
    first_answers: list[Any]


Watch = Callable[[Places, "Tensor | Outputs"], None]
"""Told who stood in the places, and the outputs of the steps just run."""


class Guide(Protocol):
    """Says what becomes of the places: a problem in which one guesses gets another graph."""

    stride: int
    """Steps from one look at the answers to the next."""

    def decide(self, places: Places) -> Places:
        """Asked before every ``stride`` steps."""

    def noisy(self, places: Places) -> Tensor:
        """Which places may get noise: (places,) bool."""

    def over(self, number: int) -> None:
        """Told that a problem is finished, or has had all its starts."""


class Kept:
    """The answers after every step of every start of every problem, as a `Watch`; ``made`` makes of outputs (steps,
    places, …) what is to be kept."""

    def __init__(self, made: Callable[[Any], Tensor]) -> None:
        self.made = made
        self.parts: dict[tuple[int, int], list[Tensor]] = {}

    def __call__(self, places: Places, outputs: Any) -> None:
        kept = self.made(outputs)
        for place, at in enumerate(places.who()):
            self.parts.setdefault(at, []).append(kept[:, place])

    def of(self, found: Found, steps: int) -> Tensor:
        """Of the start that counts: (steps, n, …); behind its last step each problem's answer stays as it is."""
        starts = torch.where(found.finished, found.starts, 1).tolist()
        each = [torch.cat(self.parts[at])[:taken] for at, taken in zip(enumerate(starts), found.steps, strict=True)]
        return torch.stack([torch.cat([t, t[-1:].expand(steps - len(t), *t.shape[1:])]) for t in each], dim=1)


def think_through(
    work: Work,
    *,
    max_steps: int,
    starts: int = 1,
    noise: float = NOISE,
    places: int | None = None,
    generator: torch.Generator | None = None,
    progress: Callable[[int], None] = lambda count: None,
    watch: Watch | None = None,
) -> Found:
    """Work on all problems, at most ``places`` at a time, until each is finished or has had ``max_steps`` steps.

    What its first, clean start does not finish is begun again with noise on the way, all further starts of a problem
    side by side; as soon as one of them finishes it, the others leave.
    """
    for name, value in (("max_steps", max_steps), ("starts", starts), ("places", 1 if places is None else places)):
        if value < 1:
            raise InputError(f"{name}: expected at least 1, got {value}")
    count, guide = len(work), work.guide
    stride = STRIDE if guide is None else guide.stride
    counter = torch.zeros(count, dtype=torch.long, device="cpu")
    found = Found([None] * count, counter.bool(), counter, counter + 1, [])
    first_answers: list[Any] = [None] * count
    waiting = deque((number, 1) for number in range(count))
    pending = [1] * count  # starts of each problem that are not over
    here: Places | None = None
    while True:
        room = max(places or count, starts - 1) - (0 if here is None else len(here.numbers))
        entering = _next(waiting, room, found.finished)
        if entering:
            numbers, of_start = torch.tensor(entering, device="cpu").T
            sizes, state = work.begin(numbers)
            new = Places.enter(numbers, sizes, state, of_start)
            here = new if here is None else here.join(new)
        if here is None or not len(here.numbers):
            found.first_answers = first_answers
            return found
        if guide is not None:
            here = guide.decide(here)
        steps = min(stride, max_steps - int(here.age.max()))
        if noise and bool((here.starts > 1).any()):
            dose = (here.starts > 1) & (here.age % NOISE_EVERY == 0) & (2 * here.age < max_steps)
            dose = dose & guide.noisy(here) if guide is not None else dose
            here = here.noisy(work.noisy, noise * dose, generator)
        outputs, state = work.run(here, steps)
        finished = work.finished(here, outputs)
        if watch is not None:
            watch(here, outputs)
        hit = finished.any(0)
        at = torch.where(hit, finished.int().argmax(0), steps - 1)
        over = hit | (here.age + steps >= max_steps)
        for place in over.nonzero()[:, 0].tolist():
            number, start, step = int(here.numbers[place]), int(here.starts[place]), int(at[place])
            pending[number] -= 1
            if found.finished[number]:
                continue
            if start == 1 or hit[place]:
                answer = work.answer(here, outputs, place, step)
                found.answers[number], found.steps[number] = answer, here.age[place] + step + 1
                if start == 1:
                    first_answers[number] = answer
            found.starts[number] = start if hit[place] else max(start, int(found.starts[number]))
            found.finished[number] = hit[place]
            if start == 1 and not hit[place] and starts > 1:
                pending[number] += starts - 1
                waiting.extendleft((number, further) for further in range(starts, 1, -1))
            if hit[place] or not pending[number]:
                progress(1)
                if guide is not None:
                    guide.over(number)
        here = here.after(state, steps).leave(over | found.finished[here.numbers])


def _next(waiting: deque[tuple[int, int]], room: int, finished: Tensor) -> list[tuple[int, int]]:
    """The next problems and starts in the queue, as many as there is room for; none that is finished already."""
    entering: list[tuple[int, int]] = []
    while waiting and len(entering) < room:
        number, start = waiting.popleft()
        if not finished[number]:
            entering.append((number, start))
    return entering


class Thought(NamedTuple):
    """What a network thought of each graph of a batch: see `RRN.think`.

    Attributes:
        answers: the answer at the step that counts, of the first graph, then of the second …: (nodes, graphs or edges,
            width).
        steps: (graphs,) steps taken, in the start that counts.
        finished: (graphs,) whether its answer settled, or was accepted.
        residuals: (graphs,) the largest change of a probability in the last step taken.
        starts: (graphs,) the start that counts; 1 is the clean one.
    """

    answers: Tensor
    steps: Tensor
    finished: Tensor
    residuals: Tensor
    starts: Tensor


@dataclass(frozen=True)
class Settled:
    """Finished when no answer of the graph has changed for so many ``steps``."""

    steps: int = 4


@dataclass(frozen=True)
class Converged:
    """Finished when no probability of the graph changes by ``tolerance`` or more in a step."""

    tolerance: float = 1e-3


Check = Callable[[Tensor, int], bool]
"""Told the answer of one graph (its nodes, width) and its number: whether to accept it."""
Until = Settled | Converged | Check


class GraphWork:
    """The graphs of a batch as `Work`."""

    guide = None

    def __init__(self, network: "RRN", given: "Prepared", until: Until, starts: int) -> None:
        self.network, self.given, self.until, self.noisy = network, given, until, network.update.add_noise
        self.graph_of = given.graph.graph_of_node(given.batch)
        self.graphs = int(self.graph_of[-1]) + 1
        self.unchanged = torch.zeros(starts + 1, self.graphs, dtype=torch.long, device="cpu")
        """For how many steps the answer of each graph has been the same, in each of its starts."""
        self.residual = self.unchanged
        self.taken: tuple[list[int], Prepared, Tensor] | None = None

    def __len__(self) -> int:
        return self.graphs

    def begin(self, numbers: Tensor) -> tuple[Tensor, State]:
        given, graph_of = self._take(numbers)
        return graph_of.bincount(minlength=len(numbers)).cpu(), self.network.initial_state(given)

    def run(self, places: Places, steps: int) -> tuple[Tensor | Outputs, State]:
        given, _ = self._take(places.numbers)
        return self.network.run(given, steps=steps, state=places.state)

    def finished(self, places: Places, outputs: Tensor | Outputs) -> Tensor:
        given, _ = self._take(places.numbers)
        before = answer_of(self.network.read(given, places.state))
        answers, rows = self._rows(places, torch.cat([before[None], answer_of(outputs)]))
        chances = answers.softmax(-1) if answers.shape[-1] > 1 else answers.sigmoid()
        self.residual = _by_graph((chances[1:] - chances[:-1]).abs().amax(-1), rows, len(places.numbers)).cpu()
        if isinstance(self.until, Converged):
            return self.residual < self.until.tolerance
        if isinstance(self.until, Settled):
            said = answers.argmax(-1) if answers.shape[-1] > 1 else (answers[..., 0] > 0).long()
            changed = _by_graph((said[1:] != said[:-1]).float(), rows, len(places.numbers)).cpu() > 0
            finished = []
            for now in changed:
                run = torch.where(now, 0, self.unchanged[places.starts, places.numbers] + 1)
                self.unchanged[places.starts, places.numbers] = run
                finished.append(run >= self.until.steps)
            return torch.stack(finished)
        accepted = [
            [bool(self.until(step[rows == place], number)) for place, number in enumerate(places.numbers.tolist())]
            for step in answers[1:]
        ]
        return torch.tensor(accepted, device="cpu")

    def answer(self, places: Places, outputs: Tensor | Outputs, place: int, step: int) -> tuple[Tensor, Tensor]:
        answers, rows = self._rows(places, answer_of(outputs)[step : step + 1])
        return answers[0, rows == place], self.residual[step, place]

    def _rows(self, places: Places, answers: Tensor) -> tuple[Tensor, Tensor]:
        """The answers of some steps as (steps, rows, width), and the place that each row belongs to."""
        given, graph_of = self._take(places.numbers)
        if not self.network.readout.reads_edges:
            if answers.shape[1] == len(graph_of):
                return answers, graph_of
            if answers.shape[1] == len(places.numbers):
                return answers, torch.arange(len(places.numbers), device=graph_of.device)
        _, receivers, edges = given.graph.ends()
        return answers.flatten(1, -2)[:, edges], graph_of[receivers]

    def _take(self, numbers: Tensor) -> "tuple[Prepared, Tensor]":
        """What belongs to some graphs, in this order, and the place of each node. A graph may stand in several."""
        wanted = numbers.tolist()
        if self.taken is None or self.taken[0] != wanted:
            sizes = self.graph_of.bincount()[numbers.to(self.graph_of.device)]
            place_of = torch.arange(len(wanted), device=sizes.device).repeat_interleave(sizes)
            once = wanted == sorted(set(wanted))
            parts = [self._select(wanted)] if once else [self._select([number]) for number in wanted]
            graph, edge_attr = type(self.given.graph).join([part[1:] for part in parts])
            x, term = torch.cat([part[0] for part in parts]), self.network.message.encode_edges(edge_attr)
            given = self.given._replace(x=x, graph=graph, edge_attr=edge_attr, edge_term=term, batch=place_of)
            self.taken = wanted, given, place_of
        return self.taken[1], self.taken[2]

    def _select(self, numbers: list[int]) -> tuple[Tensor, Graph, Tensor | None]:
        nodes = torch.isin(self.graph_of, self.graph_of.new_tensor(numbers))
        return self.given.x[nodes], *self.given.graph.select(nodes, self.given.edge_attr)


def _by_graph(values: Tensor, rows: Tensor, graphs: int) -> Tensor:
    """The largest value of each graph: (steps, rows) → (steps, graphs)."""
    zeros = values.new_zeros(len(values), graphs)
    return zeros.scatter_reduce(1, rows.expand_as(values), values, "amax")


def think(
    network: "RRN",
    given: "Prepared",
    *,
    until: Until,
    max_steps: int,
    starts: int,
    noise: float,
    generator: torch.Generator | None,
    watch: Watch | None,
) -> Thought:
    """See `RRN.think`."""
    work = GraphWork(network, given, until, starts)
    found = think_through(work, max_steps=max_steps, starts=starts, noise=noise, generator=generator, watch=watch)
    answers, residuals = zip(*found.answers, strict=True)
    return Thought(torch.cat(answers), found.steps, found.finished, torch.stack(residuals), found.starts)
