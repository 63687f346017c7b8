"""Animations of recorded steps on one graph, as SVG or GIF."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from torch import Tensor

from rrn.errors import InputError, needs_extra
from rrn.io.files import write_atomically
from rrn.viewing.plots import PALETTE, Drawn, font, gif, pillow
from rrn.viewing.trace import Record

Positions = Mapping[int, Sequence[float]] | np.ndarray | Tensor
"""Coordinates of the nodes of a graph, (nodes, 2) or by node number; in any unit, y upwards."""

SIDE, MARGIN, CAPTION = 560, 40, 40
"""Pixels of a picture: its side, the space around the nodes, the line below them."""
SMALLEST, LARGEST, READABLE = 5.0, 17.0, 9.0
"""Radius of a node in pixels: the least, the most, and the least that has space for a word."""
UNCERTAIN, LINE, MESSAGE, INK = "#eceef2", "#c9ccd4", "#333a48", "#1e222a"
FULLEST = 0.75
"""Share of its colour that a certain class has, so that words on it stay readable."""
WIDEST, HEAD = 6.0, 2.5
"""Pixels of the message with the largest effect, and how much wider its head is."""
MOST_NODES = 400
"""The largest graph that the spring layout accepts."""
MOST_FRAMES, SECONDS, HOLD = 100, 0.5, 5
"""Frames of an animation, seconds of each, and for how many frames the last one stays."""


def layout(edge_index: Tensor, nodes: int, seed: int = 0) -> np.ndarray:
    """Positions for the nodes of a graph, (nodes, 2), by networkx's spring layout."""
    if nodes > MOST_NODES:
        raise InputError(f"positions: needed for a graph of {nodes} nodes; a layout is found up to {MOST_NODES} nodes")
    try:
        import networkx
    except ImportError as error:
        raise needs_extra("a layout without given positions", "graphs") from error
    graph = networkx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(edge_index.T.tolist())
    found = networkx.spring_layout(graph, k=2.2 / math.sqrt(nodes), iterations=200, seed=seed)
    return np.array([found[node] for node in range(nodes)])


def animate(
    record: Record,
    path: str | Path,
    graph: int = 0,
    *,
    positions: Positions | None = None,
    classes: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
) -> Drawn:
    """Draw one graph step by step as an animated GIF or SVG; the ending of ``path`` decides which.

    A node (or edge, with an edge readout) has the colour of its predicted class, paler if the probability is lower.
    Dark lines are messages that changed a probability in that step, wider if the effect is larger. Without effects in
    the record none is drawn.

    Args:
        record: from `record_steps`.
        path: of the file.
        graph: the number of the graph in the batch.
        positions: of its nodes; by default from `layout`.
        classes: names of the classes; by default their numbers.
        names: names of the nodes; by default none.
    """
    path = Path(path)
    if path.suffix.lower() not in (".gif", ".svg"):
        raise InputError(f"{path}: expected a name that ends in .gif or .svg")
    one = record.select(graph)
    nodes, count = len(one.graph_of_node), one.probabilities.shape[-1]
    for name, given, expected in (("classes", classes, count), ("names", names, nodes)):
        if given is not None and len(given) != expected:
            raise InputError(f"{name}: expected {expected} of them, got {len(given)}")
    if positions is None:
        pixels = _as_pixels(layout(one.edge_index, nodes))
    else:
        pixels = _as_pixels(_as_array(positions, nodes), same_scale=True)
    picture = _Picture(
        one,
        pixels,
        [str(number) for number in range(count)] if classes is None else [str(name) for name in classes],
        None if names is None else [str(name) for name in names],
    )
    write_atomically(path, _svg(picture) if path.suffix.lower() == ".svg" else _gif(picture))
    return Drawn(path)


@dataclass(frozen=True)
class _Picture:
    """One graph, the positions of its nodes, and its looks at each step."""

    record: Record
    pixels: np.ndarray
    classes: list[str]
    names: list[str] | None

    def radius(self) -> float:
        """Radius of a node in pixels: the nearest nodes hardly touch."""
        apart = np.linalg.norm(self.pixels[:, None] - self.pixels, axis=-1) + 4 * LARGEST * np.eye(len(self.pixels))
        return float(np.clip(0.4 * np.quantile(apart.min(1), 0.2), SMALLEST, LARGEST))

    def frames(self) -> list[int]:
        """The steps that have a frame, from 0; if there are very many, every second or third."""
        steps = len(self.record.probabilities)
        return np.unique(np.linspace(0, steps - 1, min(steps, MOST_FRAMES)).round().astype(int)).tolist()

    def colours(self, step: int) -> list[str]:
        """Colours of the answers."""
        probabilities = self.record.probabilities[step]
        certainty = ((probabilities.amax(-1) * probabilities.shape[-1] - 1) / (probabilities.shape[-1] - 1)).clamp(0, 1)
        predicted = probabilities.argmax(-1)
        pairs = zip(predicted.tolist(), (FULLEST * certainty).tolist(), strict=True)
        return [_mix(PALETTE[number % len(PALETTE)], share) for number, share in pairs]

    def caption(self, step: int) -> str:
        text = f"step {step + 1}"
        if self.record.readout == "graph":
            probability, number = self.record.probabilities[step, 0].max(-1)
            text += f": {self.classes[int(number)]}, {float(probability):.0%}"
        return text

    def widths(self) -> np.ndarray:
        """Widths of the messages in pixels: (steps, edges)."""
        effects = self.record.effects
        if effects is None or not effects.numel():
            return np.zeros((len(self.record.probabilities), self.record.edge_index.shape[1]))
        later = effects[1:] if len(effects) > 1 else effects  # in the first step every state is new
        largest = float(later.abs().max())
        return (effects.abs() / largest).clamp(max=1).numpy() * WIDEST if largest else np.zeros(effects.shape)

    def lines(self) -> Iterator[tuple[int, float, float, float, float]]:
        """Edges between different nodes: number and both ends. Two opposite edges are drawn side by side."""
        pairs, radius = set(map(tuple, self.record.edge_index.T.tolist())), self.radius()
        for number, (a, b) in enumerate(self.record.edge_index.T.tolist()):
            (ax, ay), (bx, by) = self.pixels[a], self.pixels[b]
            length = math.hypot(bx - ax, by - ay)
            if a == b or length <= 2 * radius:
                continue
            ux, uy = (bx - ax) / length, (by - ay) / length
            aside = 0.25 * radius if (b, a) in pairs else 0.0
            ox, oy = -uy * aside, ux * aside
            yield number, ax + ux * radius + ox, ay + uy * radius + oy, bx - ux * radius + ox, by - uy * radius + oy


def _svg(picture: _Picture) -> str:
    steps, widths = picture.frames(), picture.widths()
    frames = [*steps, *[steps[-1]] * HOLD]
    duration = f'dur="{len(frames) * SECONDS:g}s" repeatCount="indefinite" calcMode="discrete"'
    colours = [picture.colours(step) for step in frames]

    def animated(attribute: str, values: list[str]) -> str:
        if len(set(values)) == 1:
            return ""
        return f'<animate attributeName="{attribute}" values="{";".join(values)}" {duration}/>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {SIDE + CAPTION}" '
        f'font-family="sans-serif" text-anchor="middle" fill="{INK}">',
        f'<rect width="{SIDE}" height="{SIDE + CAPTION}" fill="white"/>',
        f'<marker id="head" viewBox="0 0 4 4" refX="4" refY="2" markerWidth="{HEAD}" markerHeight="{HEAD}" '
        f'orient="auto"><path d="M0 0L4 2L0 4z" fill="{MESSAGE}"/></marker>',
    ]
    readout, radius = picture.record.readout, picture.radius()
    for number, x1, y1, x2, y2 in picture.lines():
        line = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        if readout == "edge":
            values = [each[number] for each in colours]
            parts.append(f'<line {line} stroke="{values[-1]}" stroke-width="4">{animated("stroke", values)}</line>')
        else:
            parts.append(f'<line {line} stroke="{LINE}"/>')
        drawn = [f"{widths[step, number]:.1f}" for step in frames]
        if any(float(width) >= 0.2 for width in drawn):
            style = f'stroke="{MESSAGE}" stroke-width="{drawn[-1]}" marker-end="url(#head)"'
            parts.append(f"<line {line} {style}>{animated('stroke-width', drawn)}</line>")
    predicted = [picture.record.probabilities[step].argmax(-1).tolist() for step in frames]
    for node, (x, y) in enumerate(picture.pixels):
        values = [each[node] if readout == "node" else UNCERTAIN for each in colours]
        at = f'cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"'
        parts.append(f'<circle {at} fill="{values[-1]}" stroke="{MESSAGE}">{animated("fill", values)}</circle>')
        if readout == "node" and radius >= READABLE:
            for number in sorted({each[node] for each in predicted}):
                visible = ["1" if each[node] == number else "0" for each in predicted]
                parts.append(
                    f'<text x="{x:.1f}" y="{y + 4:.1f}" font-size="12" opacity="{visible[-1]}">'
                    f"{escape(picture.classes[number])}{animated('opacity', visible)}</text>"
                )
        if picture.names is not None:
            below = f'x="{x:.1f}" y="{y + radius + 12:.1f}" font-size="11"'
            parts.append(f"<text {below}>{escape(picture.names[node])}</text>")
    for index, step in enumerate(steps):
        last = index == len(steps) - 1
        visible = ["1" if frame == step else "0" for frame in frames]
        parts.append(
            f'<text x="{SIDE / 2:g}" y="{SIDE + CAPTION / 2:g}" font-size="16" opacity="{int(last)}">'
            f"{escape(picture.caption(step))}{animated('opacity', visible)}</text>"
        )
    return "\n".join([*parts, "</svg>\n"])


def _gif(picture: _Picture) -> bytes:
    pillow("a GIF")
    from PIL import Image, ImageDraw

    fine = 2  # drawn larger, then shrunk, for smooth lines
    small, middle, large = (font(size * fine) for size in (11, 12, 16))
    widths, lines, images = picture.widths(), list(picture.lines()), []
    readout, radius = picture.record.readout, picture.radius() * fine
    for step in picture.frames():
        image = Image.new("RGB", (SIDE * fine, (SIDE + CAPTION) * fine), "white")
        draw, colours = ImageDraw.Draw(image), picture.colours(step)
        for number, *ends in lines:
            at = [value * fine for value in ends]
            draw.line(at, colours[number] if readout == "edge" else LINE, fine * (4 if readout == "edge" else 1))
        for number, *ends in lines:
            if widths[step, number] >= 0.2:
                _arrow(draw, [value * fine for value in ends], fine * float(widths[step, number]))
        predicted = picture.record.probabilities[step].argmax(-1).tolist()
        for node, (x, y) in enumerate(picture.pixels * fine):
            around = (x - radius, y - radius, x + radius, y + radius)
            draw.ellipse(around, colours[node] if readout == "node" else UNCERTAIN, MESSAGE, fine)
            if readout == "node" and radius >= READABLE * fine:
                draw.text((x, y), picture.classes[predicted[node]], INK, middle, "mm")
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
    draw.line((ax, ay, *neck), MESSAGE, max(1, round(width)))
    side = -uy * head / 2, ux * head / 2
    draw.polygon([(bx, by), (neck[0] + side[0], neck[1] + side[1]), (neck[0] - side[0], neck[1] - side[1])], MESSAGE)


def _mix(colour: str, share: float) -> str:
    """A mixture of a colour and a pale grey."""
    channels = zip(*(bytes.fromhex(each[1:]) for each in (UNCERTAIN, colour)), strict=True)
    return "#" + "".join(f"{round(pale + (full - pale) * share):02x}" for pale, full in channels)


def _as_array(positions: Positions, nodes: int) -> np.ndarray:
    try:
        found = [positions[node] for node in range(nodes)] if isinstance(positions, Mapping) else positions
        array = np.asarray(found, dtype=float)
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"positions: expected two numbers for every node, 0 to {nodes - 1} ({error})") from error
    if array.shape != (nodes, 2) or not np.isfinite(array).all():
        raise InputError(f"positions: expected finite numbers of shape {(nodes, 2)}, got {array.shape}")
    return array


def _as_pixels(positions: np.ndarray, same_scale: bool = False) -> np.ndarray:
    """Coordinates in the picture, y downwards."""
    low, high = positions.min(0), positions.max(0)
    extent = np.maximum(high - low, 1e-9)
    scale = (SIDE - 2 * MARGIN) / (extent.max() if same_scale else extent)
    return (positions - (low + high) / 2) * scale * (1.0, -1.0) + SIDE / 2
