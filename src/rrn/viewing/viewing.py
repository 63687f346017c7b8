"""See a network think, on any graph: what it believes at every step, and which messages changed that.

    seen = trace(network, x, edge_index, batch=batch)      # thinks, and keeps what happened on the way
    animate(seen, "thinking.gif", graph=0)                 # or .svg, which needs no further package
    plot_convergence(seen, "convergence.png", targets)

Both return the picture, as a notebook shows it. A GIF and plots need the extra ``figures``, a layout that is not given
the extra ``graphs`` (networkx).
"""

import base64
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from xml.sax.saxutils import escape

import numpy as np
import torch
from torch import Tensor

from rrn.errors import InputError, needs_extra
from rrn.graphs import EdgeList, Graph
from rrn.inference.places import Settled, Until
from rrn.io.files import write_atomically
from rrn.nn.losses import IGNORE, known
from rrn.nn.readouts import EdgeReadout, answer_of
from rrn.nn.updates import State
from rrn.viewing.plots import font, gif, pillow, pyplot, save

if TYPE_CHECKING:
    from rrn.network import RRN, Prepared

Layout = Mapping[int, Sequence[float]] | np.ndarray | Tensor
"""Where each node of a graph stands, (nodes, 2), or by number; in any unit, y upwards."""

SIDE, MARGIN, CAPTION = 560, 40, 40
"""Pixels of a picture: its side, the space around the nodes, the line below them."""
SMALLEST, LARGEST, READABLE = 5.0, 17.0, 9.0
"""Radius of a node, in pixels: the least, the most, and what has room for a word."""
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f", "#6a3d9a")
"""Of classes; those of Okabe and Ito first, which everybody can tell apart."""
UNSURE, LINE, NEWS, INK = "#eceef2", "#c9ccd4", "#333a48", "#1e222a"
FULLEST = 0.75
"""How much of its colour a class has that is certain: words on it stay readable."""
WIDEST, HEAD = 6.0, 2.5
"""Pixels of the message that changed most, and how much wider its head is."""
MOST_NODES = 400
"""That springs find places for."""
PARTS = 16
"""Gradients per step on the way from what was said before to what is said now."""
MOST_FRAMES, SECONDS, HOLD = 100, 0.5, 5
"""Frames of an animation, seconds of each, and for how many frames the last one stays."""


class Trace(NamedTuple):
    """What happened while a network thought about the graphs of a batch.

    Attributes:
        beliefs: (steps, answers, classes), the chance of every class in every answer; an answer of one logit has two
            classes, no and yes.
        residuals: (steps, graphs), the largest change of a chance in a step.
        effects: (steps, edges), how far what the sender said anew moved the chance of what the receiver believes now
            (of any answer of the graph, if answers are not of nodes). None if it was not asked for.
        edge_index: (2, edges).
        graph_of: (nodes,), the graph of each node.
        answer_of: (answers,), the graph of each answer.
        asked: what answers are of: "node", "graph" or "edge".
        steps: (graphs,), after how many steps `RRN.think` was done with each.
        finished: (graphs,), whether it was then finished.
    """

    beliefs: Tensor
    residuals: Tensor
    effects: Tensor | None
    edge_index: Tensor
    graph_of: Tensor
    answer_of: Tensor
    asked: Literal["node", "graph", "edge"]
    steps: Tensor
    finished: Tensor

    def only(self, graph: int) -> "Trace":
        """One graph, up to the step after which it was done."""
        if not 0 <= graph < len(self.steps):
            raise InputError(f"graph: expected 0 to {len(self.steps) - 1}, got {graph}")
        nodes, answers = self.graph_of == graph, self.answer_of == graph
        edges, last = nodes[self.edge_index[0]], int(self.steps[graph])
        return Trace(
            self.beliefs[:last, answers],
            self.residuals[:last, graph : graph + 1],
            None if self.effects is None else self.effects[:last, edges],
            self.edge_index[:, edges] - int(nodes.int().argmax()),
            self.graph_of[nodes] - graph,
            self.answer_of[answers] - graph,
            self.asked,
            self.steps[graph : graph + 1],
            self.finished[graph : graph + 1],
        )

    def accuracy(self, targets: Tensor | np.ndarray, ignore_index: int = IGNORE) -> Tensor:
        """The share of right answers at each step in each graph: (steps, graphs); NaN where no target is known."""
        targets = torch.as_tensor(targets, device="cpu")
        if targets.shape != self.answer_of.shape:
            raise InputError(f"targets: expected shape {tuple(self.answer_of.shape)}, got {tuple(targets.shape)}")
        counts = known(targets, ignore_index)
        right = ((self.beliefs.argmax(-1) == targets) & counts).double()
        total = right.new_zeros(len(right), len(self.steps)).index_add(1, self.answer_of, right)
        return total / right.new_zeros(len(self.steps)).index_add(0, self.answer_of, counts.double())


def trace(
    network: "RRN",
    x: Tensor,
    edge_index: Tensor | Graph,
    edge_attr: Tensor | None = None,
    batch: Tensor | None = None,
    *,
    until: Until = Settled(),  # noqa: B008 (frozen)
    max_steps: int = 64,
    messages: bool = True,
) -> Trace:
    """Let a network think (`RRN.think`, one start) and keep what it believed at every step.

    Args:
        network: one whose answers are of nodes, graphs or edges.
        x, edge_index, edge_attr, batch: as in `RRN.forward`.
        until: when a graph is finished, as in `RRN.think`.
        max_steps: of each graph.
        messages: whether to find out which messages changed a belief. Takes some gradients at every step; only for
            message functions that can take any edges.
    """
    given = network.prepare(x, edge_index, edge_attr, batch)
    thought = network.think(given, until=until, max_steps=max_steps)
    senders, receivers, places = given.graph.ends()
    graph_of = given.graph.graph_of_node(batch)
    followed = _Followed(network, given) if messages else None
    chances, effects = [], []
    with torch.no_grad():
        state = network.initial_state(given)
        chances.append(_chances(network, given, state, places))
        earlier = torch.zeros_like(state.h)
        for _ in range(int(thought.steps.max())):
            h = state.h
            if followed is None:
                _, state = network.step(state, given)
            else:
                state, effect = followed.step(state, earlier, places)
                effects.append(effect)
            chances.append(_chances(network, given, state, places))
            earlier = h
    beliefs = torch.stack(chances).cpu()
    edges, graph_of = torch.stack([senders, receivers]).cpu(), graph_of.cpu()
    asked = _what_is_asked(network, beliefs.shape[1], len(graph_of), len(thought.steps))
    graphs = torch.arange(len(thought.steps), device="cpu")
    of_answers = {"node": graph_of, "graph": graphs, "edge": graph_of[edges[1]]}[asked]
    change = (beliefs[1:] - beliefs[:-1]).abs().amax(-1)
    residuals = change.new_zeros(len(change), len(thought.steps))
    residuals = residuals.scatter_reduce(1, of_answers.expand_as(change), change, "amax")
    of_messages = torch.stack(effects).cpu() if messages else None
    return Trace(
        beliefs[1:],
        residuals,
        of_messages,
        edges,
        graph_of,
        of_answers,
        asked,
        thought.steps.cpu(),
        thought.finished.cpu(),
    )


@dataclass(frozen=True)
class Drawn:
    """A picture that was written; a notebook shows it where it is the last line of a cell."""

    path: Path

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        content, kind = self.path.read_bytes(), self.path.suffix.lower().lstrip(".")
        if kind == "svg":
            return {"image/svg+xml": content.decode()}
        kind = "application/pdf" if kind == "pdf" else f"image/{kind}"
        return {kind: base64.b64encode(content).decode()}


class _Followed:
    """Steps in which every edge has a sender of its own.

    The senders are copied, one per edge, so a copy is heard by one receiver alone. On the way from what senders said
    before to what they say now, the gradient of a belief with respect to each copy is summed (integrated gradients). So
    the effects of all messages to a node add up to how far their news moved its belief.
    """

    def __init__(self, network: "RRN", given: "Prepared") -> None:
        self.network, self.given = network, given
        self.senders, receivers, places = given.graph.ends()
        nodes, edges = given.graph.num_nodes, len(self.senders)
        copies = torch.arange(nodes, nodes + edges, device=self.senders.device)
        self.graph = EdgeList(torch.stack([copies, receivers]), nodes + edges)
        edge_attr = given.edge_attr
        if edge_attr is not None:
            edge_attr = edge_attr.expand(*given.graph.edge_shape, -1).flatten(0, -2)[places]
        try:
            self.edge_term = network.message.encode_edges(edge_attr)
            network.message(given.x.new_zeros(nodes + edges, network.hidden), self.graph, self.edge_term)
        except (InputError, RuntimeError, IndexError) as error:
            kind = type(network.message).__name__
            raise InputError(
                f"messages: those of {kind} cannot be followed edge by edge ({error}); trace(…, messages=False)"
            ) from error

    def step(self, state: State, earlier: Tensor, places: Tensor) -> tuple[State, Tensor]:
        """The state after one step and the effect of each message (edges,)."""
        state = state.detach()
        before, news = earlier[self.senders], (state.h - earlier)[self.senders]
        after, chances = self._after(state, before + news, places)
        believed = chances.argmax(-1, keepdim=True)
        gradients = torch.zeros_like(news)
        for part in range(PARTS):
            said = (before + (part + 0.5) / PARTS * news).requires_grad_()
            with torch.enable_grad():
                _, chances = self._after(state, said, places)
                (gradient,) = torch.autograd.grad(chances.gather(-1, believed).sum(), said)
            gradients += gradient / PARTS
        return after, (gradients * news).sum(-1)

    def _after(self, state: State, said: Tensor, places: Tensor) -> tuple[State, Tensor]:
        """The state after one step in which the sender of each edge is ``said`` (edges, hidden), and the beliefs."""
        network, given = self.network, self.given
        m = network.message(torch.cat([state.h, said]), self.graph, self.edge_term)[: given.graph.num_nodes]
        after = network.update(state, given.x, m)
        return after, _chances(network, given, after, places)


def _chances(network: "RRN", given: "Prepared", state: State, places: Tensor) -> Tensor:
    """(answers, classes)."""
    logits = answer_of(network.read(given, state))
    if isinstance(network.readout, EdgeReadout):
        logits = logits.flatten(0, -2)[places]
    if logits.shape[-1] == 1:
        logits = torch.cat([torch.zeros_like(logits), logits], dim=-1)
    return logits.softmax(-1)


def _what_is_asked(network: "RRN", answers: int, nodes: int, graphs: int) -> Literal["node", "graph", "edge"]:
    if isinstance(network.readout, EdgeReadout):
        return "edge"
    if answers not in (nodes, graphs):
        kind = type(network.readout).__name__
        raise InputError(f"network: answers of {kind} are neither of nodes nor of graphs: {answers} of them")
    return "node" if answers == nodes else "graph"


def layout(edge_index: Tensor, nodes: int, seed: int = 0) -> np.ndarray:
    """Places for the nodes of a graph, (nodes, 2): those of networkx's springs."""
    if nodes > MOST_NODES:
        raise InputError(f"places: a graph of {nodes} nodes; beyond {MOST_NODES} give places of your own")
    try:
        import networkx
    except ImportError as error:
        raise needs_extra("a layout that is not given", "graphs") from error
    graph = networkx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(edge_index.T.tolist())
    found = networkx.spring_layout(graph, k=2.2 / math.sqrt(nodes), iterations=200, seed=seed)
    return np.array([found[node] for node in range(nodes)])


def animate(
    seen: Trace,
    path: str | Path,
    graph: int = 0,
    *,
    places: Layout | None = None,
    classes: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
) -> Drawn:
    """Draw one graph of a trace step by step, as a GIF or an SVG that moves; the ending of ``path`` says which.

    A node (or edge, if answers are of edges) has the colour of the class it is believed to be of, the paler the less
    sure. Dark lines are the messages that changed a belief in that step, the wider the more; none is drawn if the trace
    has no effects.

    Args:
        seen: from `trace`.
        path: of the file.
        graph: the number of the graph in the batch.
        places: where its nodes stand; by default `layout` finds places.
        classes: what to call the classes; by default their numbers.
        names: what to call its nodes; by default they have no name.
    """
    path = Path(path)
    if path.suffix.lower() not in (".gif", ".svg"):
        raise InputError(f"{path}: expected a name that ends in .gif or .svg")
    one = seen.only(graph)
    nodes, kinds = len(one.graph_of), one.beliefs.shape[-1]
    for name, given, expected in (("classes", classes, kinds), ("names", names, nodes)):
        if given is not None and len(given) != expected:
            raise InputError(f"{name}: expected {expected} of them, got {len(given)}")
    picture = _Picture(
        one,
        _as_pixels(layout(one.edge_index, nodes)) if places is None else _as_pixels(_as_array(places, nodes), True),
        [str(number) for number in range(kinds)] if classes is None else [str(name) for name in classes],
        None if names is None else [str(name) for name in names],
    )
    write_atomically(path, _svg(picture) if path.suffix.lower() == ".svg" else _gif(picture))
    return Drawn(path)


def plot_convergence(
    seen: Trace,
    path: str | Path,
    targets: Tensor | np.ndarray | None = None,
    *,
    ignore_index: int = IGNORE,
) -> Drawn:
    """Draw how thinking went: the residual of every graph by step and, with ``targets`` (answers,), its accuracy.

    A line ends at the step after which its graph was done, with a dot if it was finished. The thick line is the median
    of the residuals, and the mean of the accuracies, over all graphs; a graph that is done counts as it ended.
    """
    accuracies = None if targets is None else seen.accuracy(targets, ignore_index)
    plt = pyplot()
    panels: list[tuple[str, Tensor]] = [("residual", seen.residuals)]
    if accuracies is not None:
        panels.append(("share of right answers", accuracies))
    figure, axes = plt.subplots(1, len(panels), figsize=(5.2 * len(panels), 3.6), squeeze=False)
    for place, (title, values) in zip(axes[0], panels, strict=True):
        held = _held(values, seen.steps).numpy()
        steps = np.arange(1, len(held) + 1)
        opacity = max(0.06, min(0.6, 6 / len(seen.steps)))
        for number, (last, finished) in enumerate(zip(seen.steps.tolist(), seen.finished.tolist(), strict=True)):
            place.plot(steps[:last], held[:last, number], color=PALETTE[0], alpha=opacity, linewidth=1)
            if finished:
                place.plot(last, held[last - 1, number], "o", color=PALETTE[0], alpha=opacity, markersize=3)
        if title == "residual":
            place.plot(steps, np.median(held, axis=1), color=PALETTE[1], linewidth=2.2)
            place.set_yscale("log")
        else:
            place.plot(steps, np.nanmean(held, axis=1), color=PALETTE[1], linewidth=2.2)
            place.set_ylim(-0.02, 1.02)
        place.set(xlabel="steps", ylabel=title, xlim=(1, max(2, len(held))))
    done = int(seen.finished.sum())
    figure.suptitle(f"{done} of {len(seen.steps)} graphs finished", fontsize=10)
    save(figure, path)
    return Drawn(Path(path))


def _held(values: Tensor, steps: Tensor) -> Tensor:
    """Each graph's value at its last step in all steps after it: (steps, graphs)."""
    at = torch.minimum(torch.arange(len(values), device="cpu")[:, None], steps - 1)
    return values.gather(0, at)


@dataclass(frozen=True)
class _Picture:
    """One graph, where it stands, and how it looks at each step."""

    seen: Trace
    pixels: np.ndarray
    classes: list[str]
    names: list[str] | None

    def radius(self) -> float:
        """Of a node, in pixels: so that the nearest hardly touch."""
        apart = np.linalg.norm(self.pixels[:, None] - self.pixels, axis=-1) + 4 * LARGEST * np.eye(len(self.pixels))
        return float(np.clip(0.4 * np.quantile(apart.min(1), 0.2), SMALLEST, LARGEST))

    def shown(self) -> list[int]:
        """The steps that have a frame, from 0: of very many every second or third."""
        steps = len(self.seen.beliefs)
        return np.unique(np.linspace(0, steps - 1, min(steps, MOST_FRAMES)).round().astype(int)).tolist()

    def colours(self, step: int) -> list[str]:
        """Of the answers."""
        chances = self.seen.beliefs[step]
        sure = ((chances.amax(-1) * chances.shape[-1] - 1) / (chances.shape[-1] - 1)).clamp(0, 1)
        said = chances.argmax(-1)
        both = zip(said.tolist(), (FULLEST * sure).tolist(), strict=True)
        return [_mixed(PALETTE[kind % len(PALETTE)], part) for kind, part in both]

    def caption(self, step: int) -> str:
        text = f"step {step + 1}"
        if self.seen.asked == "graph":
            chance, kind = self.seen.beliefs[step, 0].max(-1)
            text += f": {self.classes[int(kind)]}, {float(chance):.0%}"
        return text

    def widths(self) -> np.ndarray:
        """Of the messages, in pixels: (steps, edges)."""
        effects = self.seen.effects
        if effects is None or not effects.numel():
            return np.zeros((len(self.seen.beliefs), self.seen.edge_index.shape[1]))
        later = effects[1:] if len(effects) > 1 else effects  # at first everything is news
        largest = float(later.abs().max())
        return (effects.abs() / largest).clamp(max=1).numpy() * WIDEST if largest else np.zeros(effects.shape)

    def lines(self) -> Iterator[tuple[int, float, float, float, float]]:
        """Edges between different nodes: number, from where to where. What goes both ways is two lines side by side."""
        pairs, radius = set(map(tuple, self.seen.edge_index.T.tolist())), self.radius()
        for number, (a, b) in enumerate(self.seen.edge_index.T.tolist()):
            (ax, ay), (bx, by) = self.pixels[a], self.pixels[b]
            length = math.hypot(bx - ax, by - ay)
            if a == b or length <= 2 * radius:
                continue
            ux, uy = (bx - ax) / length, (by - ay) / length
            aside = 0.25 * radius if (b, a) in pairs else 0.0
            ox, oy = -uy * aside, ux * aside
            yield number, ax + ux * radius + ox, ay + uy * radius + oy, bx - ux * radius + ox, by - uy * radius + oy


def _svg(picture: _Picture) -> str:
    shown, widths = picture.shown(), picture.widths()
    frames = [*shown, *[shown[-1]] * HOLD]
    duration = f'dur="{len(frames) * SECONDS:g}s" repeatCount="indefinite" calcMode="discrete"'
    colours = [picture.colours(step) for step in frames]

    def moving(attribute: str, values: list[str]) -> str:
        if len(set(values)) == 1:
            return ""
        return f'<animate attributeName="{attribute}" values="{";".join(values)}" {duration}/>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {SIDE + CAPTION}" '
        f'font-family="sans-serif" text-anchor="middle" fill="{INK}">',
        f'<rect width="{SIDE}" height="{SIDE + CAPTION}" fill="white"/>',
        f'<marker id="head" viewBox="0 0 4 4" refX="4" refY="2" markerWidth="{HEAD}" markerHeight="{HEAD}" '
        f'orient="auto"><path d="M0 0L4 2L0 4z" fill="{NEWS}"/></marker>',
    ]
    asked, radius = picture.seen.asked, picture.radius()
    for number, x1, y1, x2, y2 in picture.lines():
        line = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        if asked == "edge":
            own = [each[number] for each in colours]
            parts.append(f'<line {line} stroke="{own[-1]}" stroke-width="4">{moving("stroke", own)}</line>')
        else:
            parts.append(f'<line {line} stroke="{LINE}"/>')
        news = [f"{widths[step, number]:.1f}" for step in frames]
        if any(float(width) >= 0.2 for width in news):
            drawn = f'stroke="{NEWS}" stroke-width="{news[-1]}" marker-end="url(#head)"'
            parts.append(f"<line {line} {drawn}>{moving('stroke-width', news)}</line>")
    said = [picture.seen.beliefs[step].argmax(-1).tolist() for step in frames]
    for node, (x, y) in enumerate(picture.pixels):
        own = [each[node] if asked == "node" else UNSURE for each in colours]
        at = f'cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"'
        parts.append(f'<circle {at} fill="{own[-1]}" stroke="{NEWS}">{moving("fill", own)}</circle>')
        if asked == "node" and radius >= READABLE:
            for kind in sorted({each[node] for each in said}):
                there = ["1" if each[node] == kind else "0" for each in said]
                parts.append(
                    f'<text x="{x:.1f}" y="{y + 4:.1f}" font-size="12" opacity="{there[-1]}">'
                    f"{escape(picture.classes[kind])}{moving('opacity', there)}</text>"
                )
        if picture.names is not None:
            below = f'x="{x:.1f}" y="{y + radius + 12:.1f}" font-size="11"'
            parts.append(f"<text {below}>{escape(picture.names[node])}</text>")
    for place, step in enumerate(shown):
        last = place == len(shown) - 1
        there = ["1" if frame == step else "0" for frame in frames]
        parts.append(
            f'<text x="{SIDE / 2:g}" y="{SIDE + CAPTION / 2:g}" font-size="16" opacity="{int(last)}">'
            f"{escape(picture.caption(step))}{moving('opacity', there)}</text>"
        )
    return "\n".join([*parts, "</svg>\n"])


def _gif(picture: _Picture) -> bytes:
    pillow("a GIF")
    from PIL import Image, ImageDraw

    fine = 2  # drawn larger, then shrunk, so that lines are smooth
    small, middle, large = (font(size * fine) for size in (11, 12, 16))
    widths, lines, images = picture.widths(), list(picture.lines()), []
    asked, radius = picture.seen.asked, picture.radius() * fine
    for step in picture.shown():
        image = Image.new("RGB", (SIDE * fine, (SIDE + CAPTION) * fine), "white")
        draw, colours = ImageDraw.Draw(image), picture.colours(step)
        for number, *ends in lines:
            at = [value * fine for value in ends]
            draw.line(at, colours[number] if asked == "edge" else LINE, fine * (4 if asked == "edge" else 1))
        for number, *ends in lines:
            if widths[step, number] >= 0.2:
                _arrow(draw, [value * fine for value in ends], fine * float(widths[step, number]))
        said = picture.seen.beliefs[step].argmax(-1).tolist()
        for node, (x, y) in enumerate(picture.pixels * fine):
            around = (x - radius, y - radius, x + radius, y + radius)
            draw.ellipse(around, colours[node] if asked == "node" else UNSURE, NEWS, fine)
            if asked == "node" and radius >= READABLE * fine:
                draw.text((x, y), picture.classes[said[node]], INK, middle, "mm")
            if picture.names is not None:
                draw.text((x, y + radius + 8 * fine), picture.names[node], INK, small, "mm")
        draw.text((SIDE * fine / 2, (SIDE + CAPTION / 2) * fine), picture.caption(step), INK, large, "mm")
        images.append(image.resize((SIDE, SIDE + CAPTION), Image.Resampling.LANCZOS))
    each = int(1000 * SECONDS)
    return gif(images, [*[each] * (len(images) - 1), each * HOLD], colours=96)


def _arrow(draw: Any, ends: list[float], width: float) -> None:
    ax, ay, bx, by = ends
    length = math.hypot(bx - ax, by - ay)
    head = min(HEAD * width, length)
    ux, uy = (bx - ax) / length, (by - ay) / length
    neck = bx - ux * head, by - uy * head
    draw.line((ax, ay, *neck), NEWS, max(1, round(width)))
    side = -uy * head / 2, ux * head / 2
    draw.polygon([(bx, by), (neck[0] + side[0], neck[1] + side[1]), (neck[0] - side[0], neck[1] - side[1])], NEWS)


def _mixed(colour: str, part: float) -> str:
    """So much of a colour, the rest pale."""
    channels = zip(*(bytes.fromhex(each[1:]) for each in (UNSURE, colour)), strict=True)
    return "#" + "".join(f"{round(pale + (full - pale) * part):02x}" for pale, full in channels)


def _as_array(places: Layout, nodes: int) -> np.ndarray:
    try:
        found = [places[node] for node in range(nodes)] if isinstance(places, Mapping) else places
        array = np.asarray(found, dtype=float)
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"places: expected two numbers for every node, 0 to {nodes - 1} ({error})") from error
    if array.shape != (nodes, 2) or not np.isfinite(array).all():
        raise InputError(f"places: expected finite numbers of shape {(nodes, 2)}, got {array.shape}")
    return array


def _as_pixels(places: np.ndarray, one_scale: bool = False) -> np.ndarray:
    """Into the picture, y downwards."""
    low, high = places.min(0), places.max(0)
    extent = np.maximum(high - low, 1e-9)
    scale = (SIDE - 2 * MARGIN) / (extent.max() if one_scale else extent)
    return (places - (low + high) / 2) * scale * (1.0, -1.0) + SIDE / 2
