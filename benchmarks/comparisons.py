"""Engines against plain: random networks and graphs, modified, hooked, changed in place or fed with wrong states.

Each comparison runs a network once on the engine that it chooses and once on the plain engine. Outputs, states,
gradients and tangents must agree, or both must refuse. A process that ends by a signal counts as a loss.
"""

import os
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn.modules.module import register_module_forward_hook
from torch.nn.utils import parametrizations

from rrn import RRN, CompleteGraphs, EdgeList, InputError, NeighbourTable, engines
from rrn.engines import threads
from rrn.graphs import Graph, Groups, PackedGraphs
from rrn.nn.messages import GroupMessage, MLPMessage
from rrn.nn.readouts import DotReadout, NodeReadout, answer_of
from rrn.nn.updates import GRUUpdate, LSTMUpdate, SharedLayerUpdate, State

BATCH = 100
"""Comparisons of one process."""
REFUSED = (InputError, RuntimeError, TypeError, ValueError, IndexError)


class Case:
    """A random network with its input."""

    def __init__(self, rng: random.Random) -> None:
        torch.manual_seed(rng.randrange(1 << 30))
        torch.set_num_threads(rng.choice([1, 2]))
        self.rng, self.steps = rng, rng.randint(1, 3)
        self.edge_attr: Tensor | None = None
        if rng.random() < 0.3:
            self._groups()
        else:
            self._messages()
        if rng.random() < 0.5:
            self.state = State.of(torch.randn_like(part) for part in self.network.initial_state(self.x).parts())
        else:
            self.state = None

    def _groups(self) -> None:
        rng, width = self.rng, self.rng.randint(1, 3)
        types = rng.randint(1, 3)
        counts = [rng.randint(1, 4) for _ in range(types)]
        column_types = sorted([*range(types), *rng.choices(range(types), k=rng.choice([0, 0, 2]))])
        none, features, graphs = rng.choice([0, 0, 1]), rng.choice([1, 1, 3]), []
        for _ in range(rng.randint(1, 3)):
            nodes = rng.randint(1, 6)
            members = [torch.randint(-none, counts[t], (nodes,)) for t in column_types]
            graphs.append((Groups(torch.stack(members, 1), counts, column_types=column_types), None))
        self.graph: Graph = Groups.join(graphs)[0]
        hidden, messages = rng.randint(1, 5), types * width
        parts: dict[str, Any] = {
            "message": GroupMessage(types, width),
            "update": SharedLayerUpdate(hidden, messages, messages + rng.randint(0, 5), features),
            "readout": DotReadout(hidden),
        }
        self.network = RRN(features, messages, encoder_layers=None, **parts)
        ones = torch.ones(self.graph.num_nodes, 1)
        self.x = torch.cat([torch.randn(self.graph.num_nodes, features - 1), ones], dim=1)

    def _messages(self) -> None:
        rng, hidden = self.rng, self.rng.randint(1, 6)
        nodes = rng.randint(1, 9)
        self.edge_index = torch.randint(nodes, (2, rng.randint(0, 25)))
        tables = [torch.randint(size, (size, 3)) for size in (rng.randint(1, 4), rng.randint(1, 4))]
        layout = rng.choice(["edges", "edges", "table", "table", "complete", "packed"])
        if layout == "edges":
            self.graph = EdgeList(self.edge_index, nodes)
        elif layout == "table":
            self.graph = NeighbourTable.join([(NeighbourTable(table), None) for table in tables])[0]
        elif layout == "complete":
            self.graph = CompleteGraphs(2, rng.randint(1, 4))
        else:
            self.graph = PackedGraphs(torch.randint(1, 4, (2,)))
        features, edge_features = rng.choice([0, 0, 2]), rng.randint(1, 3)
        self.network = RRN(
            edge_features,
            hidden,
            2,
            edge_features=features,
            message_layers=rng.randint(1, 3),
            update=rng.choice(["lstm", "lstm", "gru", "mlp", "none"]),  # type: ignore[arg-type]
            update_layers=rng.randint(0, 2),
            update_inputs=rng.choice(["xm", "hxm"]),  # type: ignore[arg-type]
            readout=rng.choice(["node", "node", "graph", "edge"]),  # type: ignore[arg-type]
            aggregate=rng.choice([("sum",), ("sum",), ("sum",), ("max", "sum")]),  # type: ignore[arg-type]
        ).double()
        self.x = torch.randn(self.graph.num_nodes, edge_features).double()
        if features:
            shape = self.graph.edge_shape if rng.random() < 0.7 else [1] * len(self.graph.edge_shape)
            self.edge_attr = torch.randn(*shape, features).double()

    def tensors(self) -> dict[str, Tensor]:
        """All tensors of floats that a result may depend on."""
        named = dict(self.network.named_parameters()) | {"x": self.x}
        if self.edge_attr is not None:
            named["edge_attr"] = self.edge_attr
        if self.state is not None:
            named |= {f"state {index}": part for index, part in enumerate(self.state.parts())}
        return named

    def run(self) -> tuple[Any, State]:
        return self.network.run(self.x, self.graph, self.edge_attr, steps=self.steps, state=self.state)


def outcome(plain: bool, work: Callable[[], Any]) -> Any:
    """The result of the work on the plain or on the chosen engine, or the exception that refused it."""
    try:
        if not plain:
            return work()
        with engines.only("plain"):
            return work()
    except REFUSED as error:
        return error


def difference(ours: Any, plainly: Any) -> str | None:
    """How two outcomes differ: lists of tensors or None, or exceptions."""
    if isinstance(plainly, Exception) or isinstance(ours, Exception):
        both = isinstance(plainly, Exception) and isinstance(ours, Exception)
        return None if both else f"{_short(ours)}, plain {_short(plainly)}"
    if len(ours) != len(plainly):
        return f"{len(ours)} tensors, plain {len(plainly)}"
    for index, (one, other) in enumerate(zip(ours, plainly, strict=True)):
        if (one is None) != (other is None):
            return f"tensor {index}: {_short(one)}, plain {_short(other)}"
        if one is None:
            continue
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"tensor {index}: {one.shape} {one.dtype}, plain {other.shape} {other.dtype}"
        precise = one.dtype == torch.float64
        finite = other[other.isfinite()]
        scale = float(finite.abs().max()) + 1 if finite.numel() else 1.0
        rtol, atol = (1e-7, 1e-9 * scale) if precise else (1e-3, 1e-4 * scale)
        if not torch.allclose(one, other, rtol, atol, equal_nan=True):
            return f"tensor {index}: differs by {float((one - other).abs().max()):.2g}"
    return None


def _short(value: Any) -> str:
    return f"{type(value).__name__} {value}"[:120] if isinstance(value, Exception) else type(value).__name__


def weighted(outputs: Any, state: State, which: int = 0) -> Tensor:
    """A loss of the outputs and the state; of the outputs alone (1); of the state alone (2)."""
    answer = answer_of(outputs)
    weights = torch.linspace(-1, 1, answer.numel(), dtype=answer.dtype).view_as(answer)
    total = (answer * weights).sum() if which != 2 else answer.new_zeros(())
    return total if which == 1 else total + sum(part.square().sum() for part in state.parts())


def gradients(case: Case, which: int = 0) -> list[Tensor | None]:
    """Outputs, states, and the gradients of a random choice of tensors, by backward()."""
    for tensor in case.tensors().values():
        tensor.grad = None
    outputs, state = case.run()
    weighted(outputs, state, which).backward()
    found = [tensor.grad for tensor in case.tensors().values()]
    return [answer_of(outputs).detach(), *(part.detach() for part in state.parts()), *found]


def compare(case: Case, work: Callable[[], Any]) -> str | None:
    return difference(outcome(False, work), outcome(True, work))


# --- attacks: each returns how the engines differ, or None ---


def values(case: Case) -> str | None:
    """Outputs, states, gradients; inference; losses that use only a part of the results."""
    for tensor in case.tensors().values():
        tensor.requires_grad_(case.rng.random() < 0.7)
    if not any(tensor.requires_grad for tensor in case.tensors().values()) or case.rng.random() < 0.3:
        with case.rng.choice([torch.no_grad, torch.inference_mode])():
            return compare(case, lambda: [answer_of((ran := case.run())[0]), *ran[1].parts()])
    which = case.rng.randrange(3)
    return compare(case, lambda: gradients(case, which))


class DoubledMessage(MLPMessage):
    def forward(self, *arguments: Any) -> Tensor:
        return 2 * super().forward(*arguments)


class DoubledUpdate(LSTMUpdate):
    def forward(self, *arguments: Any) -> State:
        return super().forward(*arguments).map(lambda part: 2 * part)


class DoubledGRU(GRUUpdate):
    def forward(self, *arguments: Any) -> State:
        return super().forward(*arguments).map(lambda part: 2 * part)


class DoubledSharedLayer(SharedLayerUpdate):
    def forward(self, *arguments: Any) -> State:
        return super().forward(*arguments).map(lambda part: 2 * part)


class CentredReadout(NodeReadout):
    def forward(self, h: Tensor, graph: Graph, batch: Tensor | None) -> Tensor:
        return super().forward(h - h.mean(0), graph, batch)


class DoubledEdges(EdgeList):
    def collect(self, values: Tensor, how: Any) -> Tensor:
        return 2 * super().collect(values, how)


class DoubledTable(NeighbourTable):
    def collect(self, values: Tensor, how: Any) -> Tensor:
        return 2 * super().collect(values, how)


class DoubledGroups(Groups):
    def sums(self, values: Tensor) -> Tensor:
        return 2 * super().sums(values)


SUBCLASSES: dict[type, type] = {
    MLPMessage: DoubledMessage,
    LSTMUpdate: DoubledUpdate,
    GRUUpdate: DoubledGRU,
    SharedLayerUpdate: DoubledSharedLayer,
    NodeReadout: CentredReadout,
    EdgeList: DoubledEdges,
    NeighbourTable: DoubledTable,
    Groups: DoubledGroups,
}


def subclass(case: Case) -> str | None:
    """A part of a network, or its graph, becomes an instance of a subclass with other results."""
    parts: list[Any] = [case.network.message, case.network.update, case.network.readout, case.graph]
    part = case.rng.choice([part for part in parts if type(part) in SUBCLASSES] or [case.graph])
    part.__class__ = SUBCLASSES.get(type(part), type(part))
    return compare(case, lambda: gradients_of_weights(case))


def gradients_of_weights(case: Case) -> list[Tensor | None]:
    for parameter in case.network.parameters():
        parameter.grad = None
    return gradients(case)


def _doubled(module: nn.Module, inputs: Any, output: Any) -> Any:
    return 2 * output if isinstance(output, Tensor) else output


def _doubled_gradients(module: nn.Module, to_inputs: Any, to_outputs: Any) -> Any:
    return tuple(2 * part if isinstance(part, Tensor) else part for part in to_inputs)


def _modules(case: Case) -> list[nn.Module]:
    return [part for part in case.network.modules() if not isinstance(part, RRN | nn.ModuleList)]


def hooks(case: Case) -> str | None:
    """Hooks on modules, on all modules, and on tensors."""
    kind, rng, handles = case.rng.randrange(6), case.rng, []
    module = rng.choice(_modules(case))
    if kind == 0:
        module.register_forward_hook(_doubled)
    elif kind == 1:
        module.register_full_backward_hook(_doubled_gradients)
    elif kind == 2:
        module.register_forward_pre_hook(lambda _, inputs: (2 * inputs[0], *inputs[1:]) if _tensors(inputs) else None)
    elif kind == 3:
        handles.append(register_module_forward_hook(_doubled))
    else:
        for tensor in case.tensors().values():
            tensor.requires_grad_()
            if rng.random() < 0.5:
                tensor.register_hook(lambda gradient: 0.5 * gradient)
    try:
        return compare(case, lambda: gradients(case))
    finally:
        for handle in handles:
            handle.remove()


def _tensors(inputs: Any) -> bool:
    return bool(inputs) and isinstance(inputs[0], Tensor)


def replaced(case: Case) -> str | None:
    """Layers and weights of other shapes and types."""
    rng, linears = case.rng, [part for part in case.network.modules() if isinstance(part, nn.Linear)]
    parameters = list(case.network.named_parameters())
    kind = rng.randrange(5) if linears else 4
    if kind < 4:
        linear = rng.choice(linears)
        outputs, inputs = linear.weight.shape
        if kind == 0:
            linear.bias = None
        elif kind == 1:
            parametrizations.weight_norm(linear)
        elif kind == 2:
            outputs, inputs = rng.choice([(outputs + 1, inputs), (1, inputs), (2 * outputs, inputs), (outputs, 1)])
            linear.weight, linear.bias = (
                nn.Parameter(torch.randn(*shape).double()) for shape in ((outputs, inputs), (outputs,))
            )
        else:
            linear.bias = nn.Parameter(torch.randn(rng.choice([1, outputs + 1])).double())
    else:
        name, parameter = rng.choice(parameters)
        *path, last = name.split(".")
        owner = case.network.get_submodule(".".join(path))
        choices: list[Callable[[Tensor], Tensor]] = [
            Tensor.bfloat16,
            lambda value: value.double() if value.dtype == torch.float32 else value.float(),
            lambda value: value[:-1],
            lambda value: torch.cat([value, value]),
            lambda value: value[..., :1],
        ]
        setattr(owner, last, nn.Parameter(rng.choice(choices)(parameter.detach())))
    return compare(case, lambda: gradients_of_weights(case))


def wrong_states(case: Case) -> str | None:
    """A state with a part of a wrong shape, type or number is refused."""
    rng, parts = case.rng, list(case.network.initial_state(case.x).parts())
    index = rng.randrange(len(parts))
    part = torch.randn_like(parts[index])
    nodes, width = part.shape
    wrong: list[Any] = [
        part[:-1],
        torch.cat([part] * rng.randint(2, 100)),
        part[: nodes // 2],
        torch.cat([part, part], dim=1),
        part[:, : width // 2],
        part[None],
        part[0],
        part.half(),
        part.double() if part.dtype == torch.float32 else part.float(),
        part.long(),
        part.to("meta"),
        None,
        7,
    ]
    if nodes > 1:
        wrong.append(part[:1])
    if width > 1:
        wrong.append(part[:, :1])
    parts[index] = rng.choice(wrong)
    if rng.random() < 0.2:
        parts = rng.choice([parts[:1] * (len(parts) + 1), parts[:-1] or [part, part]])
    case.state = State(parts[0], tuple(parts[1:]))
    for plain in (False, True):
        ended = outcome(plain, case.run)
        if not isinstance(ended, InputError):
            return f"not refused: {_short(ended)}"
    return None


def in_place(case: Case) -> str | None:
    """A tensor changed in place before the backward pass: the gradients of before, or an error."""
    rng, named = case.rng, case.tensors()
    for tensor in named.values():
        tensor.requires_grad_()
    expected = outcome(True, lambda: gradients(case))
    kept = {name: tensor.detach().clone() for name, tensor in named.items()}
    graph_tensors = [value for value in vars(case.graph).values() if isinstance(value, Tensor) and value.numel()]
    choices: list[Tensor] = [*named.values(), *graph_tensors]
    if isinstance(case.graph, EdgeList) and case.edge_index.numel():
        choices += [case.edge_index] * 3
    changed = rng.choice(choices)

    def work() -> list[Tensor | None]:
        for tensor in named.values():
            tensor.grad = None
        outputs, state = case.run()
        loss = weighted(outputs, state)
        with torch.no_grad():
            if changed.is_floating_point():
                changed.add_(1)
            elif changed.dtype == torch.bool:
                changed.logical_not_()
            else:
                changed.zero_()
        loss.backward()
        found = [tensor.grad for tensor in named.values()]
        return [answer_of(outputs).detach(), *(part.detach() for part in state.parts()), *found]

    ours = outcome(False, work)
    with torch.no_grad():
        for name, tensor in named.items():
            tensor.copy_(kept[name])
    if isinstance(ours, Exception) or isinstance(expected, Exception):
        return None if isinstance(ours, Exception) else f"{_short(ours)}, plain {_short(expected)}"
    return difference(ours, expected)


def changed_before(case: Case) -> str | None:
    """The tensors of a graph changed in place before a run, also to nodes that do not exist."""
    rng = case.rng
    graph_tensors = [value for value in vars(case.graph).values() if isinstance(value, Tensor) and value.numel()]
    if isinstance(case.graph, EdgeList) and case.edge_index.numel():
        graph_tensors += [case.edge_index] * 3
    if rng.random() < 0.5:
        outcome(False, case.run)
    changed = rng.choice(graph_tensors or [case.edge_index])
    if changed.dtype == torch.bool:
        changed.logical_not_()
    else:
        changed.fill_(rng.choice([0, -1, 10**6, 2**62]))
    return compare(case, lambda: gradients_of_weights(case))


def tangents(case: Case) -> str | None:
    """Forward mode: the tangents of outputs and states."""
    rng, names = case.rng, list(case.tensors())
    chosen = rng.sample(names, rng.randint(1, len(names)))
    directions = {name: torch.randn_like(tensor) for name, tensor in case.tensors().items()}
    given = {name: tensor.detach() for name, tensor in case.tensors().items()}

    def work() -> list[Tensor | None]:
        with forward_ad.dual_level():
            dual = {
                name: forward_ad.make_dual(tensor, directions[name]) if name in chosen else tensor
                for name, tensor in given.items()
            }
            weights = {name: dual[name] for name, _ in case.network.named_parameters()}
            if case.state is not None:
                parts = [dual[f"state {index}"] for index in range(len(case.state.parts()))]
            outputs = torch.func.functional_call(
                case.network,
                weights,
                (dual["x"], case.graph, dual.get("edge_attr")),
                {"steps": case.steps, "state": None if case.state is None else State.of(parts)},
            )
            return list(forward_ad.unpack_dual(outputs))

    if rng.random() < 0.5:
        with torch.no_grad():
            return compare(case, work)
    return compare(case, work)


def derivatives(case: Case) -> str | None:
    """Second derivatives, transforms of torch.func, and gradients that are taken twice."""
    kind, inputs = case.rng.randrange(4), [tensor.requires_grad_() for tensor in case.tensors().values()]

    def second() -> list[Tensor | None]:
        first = torch.autograd.grad(weighted(*case.run()), inputs, create_graph=True, allow_unused=True)
        norm = sum(part.square().sum() for part in first if part is not None)
        return list(torch.autograd.grad(norm, inputs, allow_unused=True))  # type: ignore[arg-type]

    def twice() -> list[Tensor | None]:
        loss = weighted(*case.run())
        first = torch.autograd.grad(loss, inputs, retain_graph=True, allow_unused=True)
        return [*first, *torch.autograd.grad(loss, inputs, allow_unused=True)]

    def loss_of(weights: dict[str, Tensor]) -> Tensor:
        arguments = (case.x, case.graph, case.edge_attr)
        return torch.func.functional_call(case.network, weights, arguments, {"steps": case.steps}).square().sum()

    given = {name: value.detach() for name, value in case.network.named_parameters()}

    def transformed() -> list[Tensor | None]:
        return list(torch.func.grad(loss_of)(given).values())

    def along() -> list[Tensor | None]:
        return list(torch.func.jvp(loss_of, (given,), ({name: torch.ones_like(v) for name, v in given.items()},)))

    return compare(case, (second, twice, transformed, along)[kind])


def not_finite(case: Case) -> str | None:
    """NaN in a weight or a state is not lost. Plain spreads it over edges that do not exist in dense layouts."""
    while isinstance(case.graph, CompleteGraphs | PackedGraphs):
        case = Case(case.rng)
    name = case.rng.choice([name for name in case.tensors() if name not in ("x", "edge_attr")])
    tensor = case.tensors()[name].detach()
    tensor.view(-1)[case.rng.randrange(tensor.numel())] = float("nan")
    with torch.no_grad():
        return compare(case, lambda: [answer_of(case.run()[0]).isnan().double()])


ATTACKS: dict[str, Callable[[Case], str | None]] = {
    "random networks": values,
    "subclasses": subclass,
    "hooks": hooks,
    "replaced layers and weights": replaced,
    "wrong states": wrong_states,
    "changed in place before backward": in_place,
    "graphs changed in place": changed_before,
    "forward mode": tangents,
    "further derivatives": derivatives,
    "weights that are not finite": not_finite,
}


def attack(name: str, trials: int, seed: int = 0) -> list[str]:
    """Compare ``trials`` times, in processes of `BATCH` comparisons. Returns the losses."""
    losses = []
    for begin in range(0, trials, BATCH):
        first = begin
        while first < min(begin + BATCH, trials):
            done, found, signal = _in_a_process(name, range(first, min(begin + BATCH, trials)), seed)
            losses += found
            first = done
            if signal:
                losses.append(f"{name} {first}: ended by signal {signal}")
                first += 1
    return losses


def one(name: str, number: int, seed: int = 0) -> str | None:
    """A comparison of that number, in this process."""
    threads.CHUNK_FLOATS = 8
    case = Case(random.Random(f"{name} {seed} {number}"))
    found = ATTACKS[name](case)
    return None if found is None else f"{name} {number}: {type(case.graph).__name__}: {found}"


def _in_a_process(name: str, numbers: range, seed: int) -> tuple[int, list[str], int]:
    """The number after the last comparison that ended, its losses, and the signal that ended the process, or 0."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        with os.fdopen(write, "w") as out:
            for number in numbers:
                try:
                    found = one(name, number, seed)
                except BaseException as error:
                    found = f"{name} {number}: {type(error).__name__}: {error}"
                print(" ".join((found or "").split()), file=out, flush=True)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as lines:
        ended = [line.strip() for line in lines]
    _, status = os.waitpid(child, 0)
    signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return numbers[0] + len(ended), [line for line in ended if line], signal
