"""The recurrent relational network: section 2 of the paper.

Every node of a graph has features x and a hidden state h, h⁰ = x. One step, the same at every step::

    m_ij = f(h_i, h_j, e_ij)        each node sends a message along each edge       eq. 1   nn/messages.py
    m_j  = Σ_i m_ij                 each node sums its incoming messages            eq. 2   nn/messages.py
    h_j  = g(h_j, x_j, m_j)         each node updates its state                     eq. 3   nn/updates.py
    o    = r(h)                     an answer is read out, at every step            eq. 4   nn/readouts.py
"""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint as recompute_in_backward

from rrn import engines
from rrn.engines.plain import SMALL, run_on_one_thread
from rrn.errors import InputError, NotFiniteError, check_count, shorten
from rrn.graphs import Aggregate, EdgeList, Graph, NeighbourTable, from_pyg
from rrn.inference.attempts import NOISE, Callback, run_attempts
from rrn.inference.convergence import GraphBatch, Settled, StoppingRule, as_rule
from rrn.inference.result import Result
from rrn.nn.layers import MLP, Resettable
from rrn.nn.messages import GroupMessage, Message, MLPMessage
from rrn.nn.readouts import EdgeReadout, GraphReadout, NodeReadout, Outputs, Readout, answer_of, concatenate_outputs
from rrn.nn.updates import GRUUpdate, Inputs, LSTMUpdate, MLPUpdate, NoUpdate, State, Update

UPDATES: dict[str, Callable[[int, int, Inputs], Update]] = {"lstm": LSTMUpdate, "gru": GRUUpdate, "mlp": MLPUpdate}
READOUTS: dict[str, Callable[..., Readout]] = {"node": NodeReadout, "graph": GraphReadout, "edge": EdgeReadout}


class Prepared(NamedTuple):
    """The inputs that are the same at every step, checked and encoded: see `RRN.prepare`."""

    x: Tensor
    """Encoded node features (nodes, hidden)."""
    graph: Graph
    edge_attr: Tensor | None = None
    edge_term: Tensor | None = None
    """The result of `Message.encode_edges`."""
    batch: Tensor | None = None
    """The graph of each node (nodes,)."""


class RRN(Resettable):
    """A recurrent relational network on graphs of any shape.

    >>> network = RRN(features=5, hidden=32, outputs=3)
    >>> x, edge_index = torch.randn(4, 5), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> network(x, edge_index, steps=8).shape  # (steps, nodes, outputs)
    torch.Size([8, 4, 3])

    Args:
        features: input features per node.
        hidden: units of every hidden layer, of the state and of a message.
        outputs: logits per node (``readout="node"``), graph (``readout="graph"``) or edge (``readout="edge"``).
        edge_features: input features per edge.
        encoder_layers: ReLU layers of the MLP that encodes the features as x. None: the features are x.
        message_layers: ReLU layers of f. With one, no matrix product runs on the edges.
        update: g: "lstm", "gru", "mlp", "none" (the aggregated message is the state), or a custom `Update`.
        update_layers: ReLU layers of the MLP in g.
        update_inputs: inputs of the MLP in g: "xm" or "hxm". Default: "hxm" for "mlp" (eq. 3), "xm" for "lstm" and
            "gru", whose recurrent unit reads h.
        readout: r: "node", "graph", "edge", or a custom `Readout`.
        readout_layers: ReLU layers of r; "edge" has at least one.
        pool: how a graph readout pools the nodes: the paper's ("sum",), "max" or "mean", or several, concatenated.
        dropout: dropout rate of the last ``dropout_layers`` ReLU layers of r.
        aggregate: how messages are aggregated: the paper's ("sum",), "max" or "mean", or several, concatenated.
        message: a custom `Message` instead of the MLP.
    """

    def __init__(
        self,
        features: int,
        hidden: int,
        outputs: int | None = None,
        *,
        edge_features: int = 0,
        encoder_layers: int | None = 1,
        message_layers: int = 1,
        update: Literal["lstm", "gru", "mlp", "none"] | Update = "lstm",
        update_layers: int = 1,
        update_inputs: Inputs | None = None,
        readout: Literal["node", "graph", "edge"] | Readout = "node",
        readout_layers: int = 0,
        dropout: float = 0.0,
        dropout_layers: int = 1,
        aggregate: tuple[Aggregate, ...] = ("sum",),
        pool: tuple[Aggregate, ...] = ("sum",),
        message: Message | None = None,
    ) -> None:
        arguments = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        super().__init__()
        if isinstance(update, str) and update not in (*UPDATES, "none"):
            raise InputError(f"update: expected one of {[*UPDATES, 'none']} or an Update, got {shorten(repr(update))}")
        if isinstance(readout, str) and readout not in READOUTS:
            raise InputError(f"readout: expected one of {list(READOUTS)} or a Readout, got {shorten(repr(readout))}")
        if (outputs is None) == isinstance(readout, str):
            expected = "a number of outputs" if outputs is None else "None with a custom readout"
            raise InputError(f"outputs: expected {expected}, got {outputs}")
        if update_inputs is not None and not (isinstance(update_inputs, str) and update_inputs in get_args(Inputs)):
            raise InputError(
                f"update_inputs: expected one of {list(get_args(Inputs))}, got {shorten(repr(update_inputs))}"
            )
        for part, value in (("update", update), ("readout", readout), ("message", "" if message is None else message)):
            if not isinstance(value, str | nn.Module):
                raise InputError(f"{part}: expected a name or a module, got {shorten(repr(value))}")
        counts = {"features": features, "hidden": hidden, "outputs": 1 if outputs is None else outputs}
        counts |= {} if message is not None else {"message_layers": message_layers}
        layers = {"encoder_layers": 0 if encoder_layers is None else encoder_layers, "update_layers": update_layers}
        layers |= {"readout_layers": readout_layers, "dropout_layers": dropout_layers, "edge_features": edge_features}
        for name, number in (counts | layers).items():
            least = 1 if name in counts else 0
            if type(number) is not int or number < least:
                check_count(name, number, least)
        if not isinstance(dropout, int | float) or not 0 <= dropout <= 1:
            raise InputError(f"dropout: expected a number from 0 to 1, got {shorten(repr(dropout))}")
        if encoder_layers is None and isinstance(update, str) and features != hidden:
            raise InputError(f"features: expected {hidden}, the hidden width, without an encoder; got {features}")
        self.features, self.hidden, self.edge_features = features, hidden, edge_features
        self.compile_options: dict[str, Any] | None = None
        """The options of `compile`; None: the steps are not compiled."""
        self._state_layout: tuple[Update | None, torch.dtype | None, tuple[Any, ...]] = None, None, ()
        self.encoder = None if encoder_layers is None else MLP(features, hidden, hidden, encoder_layers)
        self.message = message or MLPMessage(hidden, edge_features, message_layers, aggregate)
        if update == "none":
            self.update: Update = NoUpdate()
        elif isinstance(update, str):
            update_inputs = update_inputs or ("hxm" if update == "mlp" else "xm")
            self.update = UPDATES[update](hidden, update_layers, update_inputs)
        else:
            self.update = update
        if isinstance(readout, str):
            options: dict[str, dict[str, Any]] = {"edge": {"edge_features": edge_features}, "graph": {"pool": pool}}
            more = options.get(readout, {})
            self.readout: Readout = READOUTS[readout](hidden, outputs, readout_layers, dropout, dropout_layers, **more)
        else:
            self.readout = readout
        arguments |= {"update_inputs": update_inputs, "aggregate": tuple(aggregate), "pool": tuple(pool)}
        if message is None:
            del arguments["message"]
        self.settings: dict[str, Any] = {
            name: {"custom": type(value).__name__} if isinstance(value, nn.Module) else value
            for name, value in arguments.items()
        }
        """The arguments of the constructor, as JSON values; a custom part is {"custom": class name}."""

    def forward(
        self,
        x: "Tensor | Prepared",
        edge_index: Tensor | Graph | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        steps: int,
        state: State | None = None,
        checkpoint: int | None = None,
    ) -> Tensor:
        """Run ``steps`` steps and return the outputs of every step.

        Args:
            x: node features (nodes, features). A ``Data`` or ``Batch`` of PyTorch Geometric, or the result of
                `prepare`, includes the next three arguments.
            edge_index: (2, edges), senders in row 0, receivers in row 1; or a `Graph`.
            edge_attr: edge features (edges, edge_features).
            batch: the graph of each node (nodes,), ascending from 0; None for a single graph.
            steps: number of steps; may differ from training.
            state: the state to resume from; by default the initial state, h⁰ = x.
            checkpoint: store every k-th state only, to save memory: see `run`.

        Returns:
            logits of shape (steps, nodes, outputs), (steps, graphs, outputs) with a graph readout, or (steps, edges,
            outputs) with an edge readout.
        """
        outputs, _ = self.run(x, edge_index, edge_attr, batch, steps=steps, state=state, checkpoint=checkpoint)
        return answer_of(outputs)

    def run(
        self,
        x: "Tensor | Prepared",
        edge_index: Tensor | Graph | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        steps: int,
        state: State | None = None,
        checkpoint: int | None = None,
    ) -> tuple[Any, State]:
        """Run ``steps`` steps; returns ``(outputs, state)``, the state after the last step, to resume from.

        Arguments as in `forward`. The outputs are those of the readout, a tensor or `Outputs`, stacked over steps.
        ``checkpoint=k`` stores every k-th state and recomputes the rest in the backward pass. Memory is then that of k
        steps, for a third more time.
        """
        if type(steps) is not int or steps < 1:
            check_count("steps", steps)
        if checkpoint is not None:
            check_count("checkpoint", checkpoint)
        given = self._prepared(x, edge_index, edge_attr, batch)
        if state is None:
            state = self.update.initial_state(given.x)
        else:
            self._check_state(state, given)
        engine = engines.choose(self, given, state)
        if checkpoint is None:
            if torch.compiler.is_compiling() or torch.get_num_threads() == 1 or given.x.numel() > SMALL:
                return engine.run(self, given, state, steps)
            return run_on_one_thread(engine, self, given, state, steps, inputs=(x, edge_attr))
        parts = []
        for done in range(0, steps, checkpoint):
            some = min(checkpoint, steps - done)
            part, state = recompute_in_backward(engine.run, self, given, state, some, use_reentrant=False)
            parts.append(part)
        return concatenate_outputs(parts), state

    def step(
        self,
        state: State,
        x: "Tensor | Prepared",
        edge_index: Tensor | Graph | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> tuple[Any, State]:
        """One step from ``state``; returns ``(outputs, state)``, as `run`. Before a loop, call `prepare` once."""
        given = self._prepared(x, edge_index, edge_attr, batch)
        self._check_state(state, given)
        state = engines.next_state(self, given, state)
        return self.read(given, state), state

    def prepare(
        self,
        x: Tensor,
        edge_index: Tensor | Graph | None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> "Prepared":
        """Check and encode, once, the inputs that are the same at every step.

        ``x`` may be a ``Data`` or ``Batch`` of PyTorch Geometric, here and in all other methods.
        """
        if not isinstance(x, Tensor) and (hasattr(x, "edge_index") or hasattr(x, "node_types")):
            if edge_index is not None or edge_attr is not None or batch is not None:
                raise InputError("x: a Data includes edge_index, edge_attr and batch; give no others")
            return self.prepare(**from_pyg(x))
        graph = self._check(x, edge_index, edge_attr, batch)
        edge_term = None
        if edge_attr is not None or type(self.message) not in (MLPMessage, GroupMessage):
            edge_term = self.message.encode_edges(edge_attr)
        return Prepared(self._encode(x), graph, edge_attr, edge_term, batch)

    def initial_state(self, x: "Tensor | Prepared") -> State:
        """The state before the first step, for node features x (nodes, features)."""
        return self.update.initial_state(x.x if isinstance(x, Prepared) else self._encode(x))

    def think(
        self,
        x: "Tensor | Prepared",
        edge_index: Tensor | Graph | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        until: "StoppingRule | Callable[[Tensor, int], bool]" = Settled(),  # noqa: B008 (frozen)
        max_steps: int = 64,
        attempts: int = 1,
        noise: float = NOISE,
        generator: torch.Generator | None = None,
        callback: "Callback | None" = None,
    ) -> Result:
        """Run each graph of a batch for as many steps as it needs.

        Args:
            x, edge_index, edge_attr, batch: as in `forward`.
            until: when the answer to a graph is accepted: when its classes have not changed for some steps (`Settled`),
                when its probabilities hardly change (`Converged`), or when a function of the answer (rows, outputs) and
                the number of the graph returns true.
            max_steps: steps of one attempt.
            attempts: how many attempts a graph gets. All but the first add noise; the first that is accepted counts.
            noise: its standard deviation.
            generator: random generator of the noise.
            callback: called after every few steps with the slots and the outputs of these steps.

        Returns:
            a `Result`: answers is one tensor (nodes, graphs or edges, width), graph after graph; details has
            ``residuals`` (graphs,), the largest change of a probability in the last step.
        """
        check_count("max_steps", max_steps)
        check_count("attempts", attempts)
        if not isinstance(noise, int | float) or not 0 <= noise < math.inf:
            raise InputError(f"noise: expected a number of at least 0, got {shorten(repr(noise))}")
        given = self._prepared(x, edge_index, edge_attr, batch)
        with torch.no_grad():
            graphs = GraphBatch(self, given, as_rule(until), attempts)
            result = run_attempts(
                graphs, max_steps=max_steps, attempts=attempts, noise=noise, generator=generator, callback=callback
            )
        answers, residuals = zip(*result.answers, strict=True)
        return replace(result, answers=torch.cat(answers), details={"residuals": np.array(residuals)})

    def read(self, given: "Prepared", state: State) -> Tensor | Outputs:
        """Eq. 4: the outputs for a state."""
        edges = (given.edge_attr,) if self.readout.reads_edges else ()
        return self.readout(self.update.readout_state(state), given.graph, given.batch, *edges)

    def compile(self, *args: Any, **options: Any) -> None:
        """Compile one step with `torch.compile`: one program for all numbers of steps and sizes of a graph.

        ``options`` are those of `torch.compile`. On a CPU the engines are usually faster: see `rrn.engines`. Custom
        parts must be traceable. A graph readout is not compiled, as the number of graphs depends on the data.
        """
        if args:
            raise InputError("compile: options are passed by name, such as compile(mode='reduce-overhead')")
        self.compile_options = options

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the arguments of the constructor (``config.json``) and the weights (``model.safetensors``).

        The layout is that of huggingface_hub's ``PyTorchModelHubMixin``. Of a custom message, update or readout only
        the class name is written; pass the part to `from_pretrained`.
        """
        from rrn.io.pretrained import save_network

        save_network(self, folder)

    @classmethod
    def from_pretrained(cls, name: str | Path, *, revision: str | None = None, **parts: nn.Module) -> Self:
        """Load the result of `save_pretrained`, in evaluation mode: from a folder, or from the hub by ``hf://owner/name``.

        ``revision`` is a commit of the hub repository. ``parts`` are the custom parts, as passed to the constructor;
        the file holds their weights: ``RRN.from_pretrained(folder, message=MyMessage(32))``.
        """
        from rrn.io.pretrained import find_weights, load_network

        return load_network(cls, find_weights(name, revision), parts)

    def _encode(self, x: Tensor) -> Tensor:
        return x if self.encoder is None else self.encoder(x)

    def _prepared(
        self, x: "Tensor | Prepared", edge_index: Tensor | Graph | None, edge_attr: Tensor | None, batch: Tensor | None
    ) -> "Prepared":
        given = x if isinstance(x, Prepared) else self.prepare(x, edge_index, edge_attr, batch)
        given.graph.check_unchanged()
        if given.x.dim() != 2 or given.x.shape[0] != given.graph.num_nodes:
            raise InputError(f"x: expected {given.graph.num_nodes} encoded rows, got {tuple(given.x.shape)}")
        return given

    def _check_state(self, state: State, given: "Prepared") -> None:
        """Compare every part with the initial state of one node."""
        if not isinstance(state, State) or not isinstance(state.memory, tuple):
            raise InputError(f"state: expected a State, got {type(state).__name__}")
        update, dtype, models = self._state_layout
        if update is not self.update or dtype != given.x.dtype:
            with torch.no_grad():
                h, memory = self.update.initial_state(given.x[:1])
            models = tuple((part.shape[1:], part.dtype) for part in (h, *memory))
            if not torch.compiler.is_compiling():
                self._state_layout = self.update, given.x.dtype, models
        parts = state.h, *state.memory
        if len(parts) != len(models):
            expected_parts = f"h and {len(models) - 1} memory tensors, as update.initial_state(x) returns"
            raise InputError(f"state: expected {expected_parts}, got h and {len(parts) - 1}")
        autocast = torch.is_autocast_enabled(given.x.device.type) if given.x.device.type != "meta" else False
        for index, (part, (width, expected)) in enumerate(zip(parts, models, strict=True)):
            name = f"state: memory[{index - 1}]" if index else "state: h"
            shape = (given.graph.num_nodes, *width)
            if not isinstance(part, Tensor) or part.shape != shape:
                found = tuple(part.shape) if isinstance(part, Tensor) else type(part).__name__
                raise InputError(f"{name}: expected shape {shape}, got {found}")
            if part.dtype != expected and not (autocast and part.is_floating_point()):
                raise InputError(f"{name}: expected {expected}, got {part.dtype}")
            if part.device != given.x.device:
                raise InputError(f"{name}: expected device {given.x.device}, got {part.device}")

    def _check(
        self,
        x: Tensor,
        edge_index: Tensor | Graph | None,
        edge_attr: Tensor | None,
        batch: Tensor | None,
    ) -> Graph:
        if edge_index is None:
            raise InputError("edge_index: expected a tensor of shape (2, edges) or a Graph, got None")
        if not isinstance(x, Tensor) or x.dim() != 2 or x.shape[1] != self.features:
            found = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
            raise InputError(f"x: expected a tensor of shape (nodes, {self.features}), got {found}")
        self._check_dtype("x", x)
        nodes = x.shape[0]  # not len(x), which torch.export would take for a constant
        if nodes == 0:
            raise InputError("x: the graph has no nodes")
        for name, values in (("edge_index", edge_index), ("edge_attr", edge_attr), ("batch", batch)):
            if name != "edge_index" and values is not None and not isinstance(values, Tensor):
                raise InputError(f"{name}: expected a tensor, got {type(values).__name__}")
            if isinstance(values, Tensor) and values.device != x.device:
                raise InputError(f"{name}: expected device {x.device}, as x is, got {values.device}")
        graph = edge_index if isinstance(edge_index, Graph) else EdgeList(edge_index, nodes)
        if graph.num_nodes != nodes:
            raise InputError(f"edge_index: a graph of {graph.num_nodes} nodes, but x has {nodes}")
        if (edge_attr is None) != (self.edge_features == 0):
            expected = f"shape {(*graph.edge_shape, self.edge_features)}" if self.edge_features else "None"
            got = "None" if edge_attr is None else tuple(edge_attr.shape)
            raise InputError(f"edge_attr: expected {expected} for edge_features={self.edge_features}, got {got}")
        if edge_attr is not None:
            graph.check_edge_attr(edge_attr, self.edge_features)
            self._check_dtype("edge_attr", edge_attr)
        needs_batch = isinstance(graph, EdgeList | NeighbourTable) and isinstance(self.readout, GraphReadout)
        if batch is None and needs_batch and graph.graphs > 1:
            raise InputError(f"batch: expected the graph of each node, as there are {graph.graphs} graphs; got None")
        if batch is not None and (batch.shape != (nodes,) or batch.dtype != torch.int64):
            raise InputError(f"batch: expected torch.int64 of shape ({nodes},), got {batch.dtype} {tuple(batch.shape)}")
        if not torch.compiler.is_compiling() and x.device.type != "meta":
            for name, numbers in (("x", x), ("edge_attr", edge_attr)):
                if numbers is not None and not numbers.isfinite().all():
                    row = int((~numbers.isfinite()).flatten(1).any(1).nonzero()[0])
                    raise NotFiniteError(f"{name}: not finite (NaN or infinity) in row {row}")
            if batch is not None and (int(batch[0]) != 0 or bool((batch.diff() < 0).any())):
                raise InputError("batch: expected graph numbers in ascending order from 0")
        return graph

    def _check_dtype(self, name: str, values: Tensor) -> None:
        weights = next(self.parameters(), values)
        autocast = values.device.type != "meta" and torch.is_autocast_enabled(values.device.type)
        if not values.is_floating_point() or (values.dtype != weights.dtype and not autocast):
            raise InputError(f"{name}: expected {weights.dtype}, as the network's weights are, got {values.dtype}")
        if values.device != weights.device:
            raise InputError(f"{name}: expected device {weights.device}, where the network is, got {values.device}")
