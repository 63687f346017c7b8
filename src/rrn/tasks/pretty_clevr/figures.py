"""Pictures of Pretty-CLEVR scenes: raw images for data sets, SVG for pages, figures for papers.

Images are drawn with Pillow, plots with matplotlib: both come with the extra ``figures`` and are imported only when
needed. A question as SVG (`scene_svg`) needs neither.
"""

import io
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rrn.errors import InputError
from rrn.io.files import write_atomically
from rrn.tasks.pretty_clevr.data import COLOURS, OBJECT_RADIUS, SHAPES, Scene, Scenes, describe_question

PALETTE = ("#B40A10", "#E48A00", "#F8EC6E", "#00966B", "#9FE6FF", "#4038DC", "#9A58A6", "#262626")
"""In the order of `COLOURS`. Any two differ by a CIELAB distance of at least 25, also in simulated colour blindness
(protan, deutan, tritan), and mostly in lightness too."""
INK = "#262626"

_STROKE = 0.1  # width of an object's outline, in radii
_SUPERSAMPLING = 4
_ARROW = 0.012  # width of an arrow, in sides of the picture
_CLEARANCE = 0.009  # from an object's outline to the tip or tail of an arrow
_LABEL_RADIUS = 0.025
_HALO_RADIUS = OBJECT_RADIUS + 0.014
_HALO, _FRAME = "#E9E9E9", "#B8B8B8"


@cache
def outline(shape: str) -> np.ndarray:
    """The corners of a shape, (k, 2), counterclockwise, y upwards, within the unit disc; its middle is inside."""
    outlines: dict[str, Callable[[], np.ndarray]] = {
        "circle": lambda: 0.86 * _on_circle(64),
        "square": lambda: _on_circle(4, turn=45),
        "triangle": lambda: _on_circle(3, turn=90),
        "diamond": lambda: _on_circle(4, turn=90) * [0.62, 1.0],
        "plus": _plus,
        "cross": lambda: _plus() @ np.array([[1, 1], [-1, 1]]) / np.sqrt(2),
        "star": lambda: _on_circle(10, turn=90) * np.where(np.arange(10) % 2, 0.46, 1.0)[:, None],
        "heart": _heart,
    }
    if shape not in outlines:
        raise InputError(f"no shape {shape!r}; there are {', '.join(SHAPES)}")
    return outlines[shape]()


def render(scene: Scene, size: int = 128) -> np.ndarray:
    """The scene as an image, anti-aliased on white, uint8 (size, size, 3); the unit square fills it."""
    return np.array(_image(scene, size))


def write_images(
    folder: str | Path, scenes: Scenes, size: int = 128, progress: Callable[[int, int], None] = lambda done, total: None
) -> None:
    """One PNG a scene, ``000000.png`` and so on."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(len(scenes)):
        _image(scenes.scene(index), size).save(folder / f"{index:06d}.png", compress_level=6)
        if (index + 1) % 100 == 0 or index + 1 == len(scenes):
            progress(index + 1, len(scenes))


def scene_svg(scene: Scene, start: int | None = None, jumps: int = 0) -> str:
    """The scene as an SVG element of 100 × 100 units, scaled by its container; with ``start`` also the jumps.

    Objects have ``class="object"`` and ``data-colour`` / ``data-shape``; jumps are ``class="jump"``.
    """
    title = "" if start is None else f"<title>{describe_question(scene, start, jumps)}</title>"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100" role="img">{title}',
        '<rect width="100" height="100" fill="#FFFFFF"/>',
    ]
    path = [] if start is None else scene.path(start, jumps)
    for role, index in (("start", path[0]), ("answer", path[-1])) if path else ():
        x, y = _svg_xy(scene.positions[index])
        dashes = ' stroke-dasharray="1.8 1.2"' if role == "start" else ""
        parts.append(
            f'<circle class="{role}" cx="{x:.2f}" cy="{y:.2f}" r="{100 * _HALO_RADIUS:.2f}" fill="{_HALO}" '
            f'stroke="{INK}" stroke-width="0.5"{dashes}/>'
        )
    for position, colour, shape in zip(scene.positions, scene.colours, scene.shapes, strict=True):
        corners = _svg_points(position + OBJECT_RADIUS * outline(SHAPES[shape]))
        parts.append(
            f'<polygon class="object" data-colour="{COLOURS[colour]}" data-shape="{SHAPES[shape]}" points="{corners}" '
            f'fill="{PALETTE[colour]}" stroke="{INK}" stroke-width="0.6" stroke-linejoin="round">'
            f"<title>{COLOURS[colour]} {SHAPES[shape]}</title></polygon>"
        )
    for number, arrow in enumerate(_arrows(scene, path), 1):
        corners = _svg_points(_arrow_outline(arrow))
        x, y = _svg_xy(arrow.label)
        parts.append(
            f'<g class="jump"><polygon points="{corners}" fill="{INK}" stroke="#FFFFFF" stroke-width="0.4"/>'
            f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{100 * _LABEL_RADIUS:.2f}" fill="#FFFFFF" stroke="{INK}" '
            f'stroke-width="0.5"/><text x="{x:.2f}" y="{y + 1.2:.2f}" font-size="3.4" font-weight="bold" '
            f'font-family="sans-serif" text-anchor="middle" fill="{INK}">{number}</text></g>'
        )
    return "\n".join([*parts, "</svg>"])


def draw_contact_sheet(path: str | Path, scenes: Scenes, columns: int = 4) -> None:
    """All scenes in rows of ``columns``, to a file .png or .pdf."""
    from rrn.viewing.plots import pillow

    if len(scenes) == 0:
        raise InputError("a contact sheet needs at least one scene")
    side, gap = 400, 24
    rows = -(-len(scenes) // columns)
    sheet = pillow().new("RGB", (columns * (side + gap) + gap, rows * (side + gap) + gap), "#FFFFFF")
    for index in range(len(scenes)):
        row, column = divmod(index, columns)
        left, top = gap + column * (side + gap), gap + row * (side + gap)
        sheet.paste(_FRAME, (left - 2, top - 2, left + side + 2, top + side + 2))
        sheet.paste(_image(scenes.scene(index), side), (left, top))
    _save(sheet, path)


def draw_question(path: str | Path, scene: Scene, start: int, jumps: int) -> None:
    """The scene with the jumps from ``start`` (0-15) as numbered arrows, question and answer above it.

    SVG needs no extra: `scene_svg`, the question and its answer as its title.
    """
    if Path(path).suffix.lower() == ".svg":
        write_atomically(Path(path), scene_svg(scene, start, jumps))
        return
    from rrn.viewing.plots import font, pillow

    side, title = 800, 72
    image = pillow().new("RGB", (side, side + title), "#FFFFFF")
    image.paste(_image(scene, side, scene.path(start, jumps)), (0, title))
    from PIL import ImageDraw

    draw = ImageDraw.Draw(image)
    draw.rectangle((0, title, side - 1, side + title - 1), outline=_FRAME, width=2)
    draw.text((side / 2, title / 2), describe_question(scene, start, jumps), INK, font(38, True), "mm")
    _save(image, path)


class _Arrow(NamedTuple):
    tail: np.ndarray
    head: np.ndarray
    label: np.ndarray


def _arrows(scene: Scene, path: list[int]) -> list[_Arrow]:
    """One arrow per jump. Its label is on the arrow, or next to a short one, where it covers least."""
    ends = []
    for origin, target in pairwise(path):
        a, b = scene.positions[origin].astype(float), scene.positions[target].astype(float)
        along = (b - a) / np.linalg.norm(b - a)
        tail = a + (_reach(scene, origin, along) + _CLEARANCE) * along
        ends.append((tail, b - (_reach(scene, target, -along) + _CLEARANCE) * along))

    objects = scene.positions.astype(float)
    shafts = [tail + np.linspace(0, 1, 15)[:, None] * (head - tail) for tail, head in ends]
    labels: list[np.ndarray] = []
    for number, (tail, head) in enumerate(ends):
        length = np.linalg.norm(head - tail)
        aside = np.array([tail[1] - head[1], head[0] - tail[0]]) / length
        if length > 0.14:
            spots = [tail + share * (head - tail) for share in (0.45, 0.4, 0.5, 0.35, 0.55, 0.3, 0.6)]
        else:
            middle = (tail + head) / 2
            spots = [middle + shift * aside for shift in (0.043, -0.043, 0.055, -0.055)]
        other_shafts = [shaft for index, shaft in enumerate(shafts) if index != number]

        def space(spot: np.ndarray, others: list[np.ndarray] = other_shafts) -> float:
            to_objects = np.linalg.norm(objects - spot, axis=1).min() - OBJECT_RADIUS
            to_shafts = min((np.linalg.norm(shaft - spot, axis=1).min() for shaft in others), default=np.inf)
            to_labels = min((np.linalg.norm(label - spot) for label in labels), default=np.inf) - _LABEL_RADIUS
            return float(min(to_objects, to_shafts, to_labels, _LABEL_RADIUS + 0.01))

        labels.append(max(spots, key=space))
    return [_Arrow(tail, head, label) for (tail, head), label in zip(ends, labels, strict=True)]


def _arrow_outline(arrow: _Arrow) -> np.ndarray:
    along = (arrow.head - arrow.tail) / np.linalg.norm(arrow.head - arrow.tail)
    aside = np.array([-along[1], along[0]])
    neck = arrow.head - 0.03 * along
    corners = [arrow.tail + _ARROW / 2 * aside, neck + _ARROW / 2 * aside, neck + 0.019 * aside, arrow.head]
    mirrored = [neck - 0.019 * aside, neck - _ARROW / 2 * aside, arrow.tail - _ARROW / 2 * aside]
    return np.array(corners + mirrored)


def _reach(scene: Scene, index: int, direction: np.ndarray) -> float:
    """How far an object extends from its position in a direction (of length 1)."""
    corners = OBJECT_RADIUS * outline(SHAPES[scene.shapes[index]])
    edges = np.roll(corners, -1, axis=0) - corners
    turned = np.array([-direction[1], direction[0]])
    with np.errstate(divide="ignore", invalid="ignore"):
        share = -(corners @ turned) / (edges @ turned)  # where along its edge the ray's line crosses it
        crossings = (corners + share[:, None] * edges) @ direction
    return float(crossings[(share >= 0) & (share <= 1)].max())


def _image(scene: Scene, size: int, path: Sequence[int] = ()) -> Any:
    """The scene as a Pillow image; with a ``path`` of objects also its start, its end and its jumps."""
    from rrn.viewing.plots import font, pillow

    image_module = pillow()
    from PIL import ImageDraw

    side = size * _SUPERSAMPLING
    image = image_module.new("RGB", (side, side), "#FFFFFF")
    draw = ImageDraw.Draw(image)

    def pixels(positions: np.ndarray) -> Any:
        return (np.array([0, side]) + np.array([side, -side]) * positions).ravel().tolist()

    if path:
        line = round(0.005 * side)
        start, end = scene.positions[path[0]], scene.positions[path[-1]]
        draw.circle(pixels(start), _HALO_RADIUS * side, _HALO)
        draw.circle(pixels(end), _HALO_RADIUS * side, _HALO, INK, line)
        corners = pixels(start + _HALO_RADIUS * np.array([[-1, 1], [1, -1]]))
        for angle in range(0, 360, 20):
            draw.arc(corners, angle, angle + 12, INK, line)
    for (x, y), colour, shape in zip(scene.positions.tolist(), scene.colours, scene.shapes, strict=True):
        outer, inner = _pixels(SHAPES[shape], side)
        middle = np.array([x * side, (1 - y) * side])
        draw.polygon((outer + middle).ravel().tolist(), fill=INK)
        draw.polygon((inner + middle).ravel().tolist(), fill=PALETTE[colour])
    for number, arrow in enumerate(_arrows(scene, list(path)), 1):
        draw.polygon(pixels(_arrow_outline(arrow)), INK, "#FFFFFF", round(0.002 * side))
        draw.circle(pixels(arrow.label), _LABEL_RADIUS * side, "#FFFFFF", INK, round(0.005 * side))
        draw.text(pixels(arrow.label), str(number), INK, font(0.034 * side, True), "mm")
    return image.reduce(_SUPERSAMPLING)


@cache
def _pixels(shape: str, side: int) -> tuple[np.ndarray, np.ndarray]:
    """The corners of a shape, and those of its filled area, in pixels around its centre, y downwards."""
    scale = OBJECT_RADIUS * side * np.array([1, -1])
    return outline(shape) * scale, _inset(outline(shape), _STROKE) * scale


def _inset(corners: np.ndarray, distance: float) -> np.ndarray:
    """The polygon whose edges lie ``distance`` further in."""
    edges = np.roll(corners, -1, axis=0) - corners
    inward = np.stack([-edges[:, 1], edges[:, 0]], axis=1) / np.linalg.norm(edges, axis=1, keepdims=True)
    before = np.roll(inward, 1, axis=0)
    return corners + distance * (before + inward) / (1 + (before * inward).sum(1, keepdims=True))


def _on_circle(count: int, turn: float = 0) -> np.ndarray:
    angles = 2 * np.pi * np.arange(count) / count + np.radians(turn)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _plus() -> np.ndarray:
    width, length = 0.29, 0.95
    arm = np.array([[length, -width], [length, width], [width, width]])
    quarter_turn = np.array([[0, 1], [-1, 0]])
    return np.concatenate([arm @ np.linalg.matrix_power(quarter_turn, turns) for turns in range(4)])


def _heart() -> np.ndarray:
    """Two lobes, arcs of circles, and the two lines that touch them and meet in the tip."""
    lobe, middle_x, middle_y, tip = 0.5, 0.43, 0.3, -0.95
    to_tip = np.hypot(middle_x, middle_y - tip)
    touch = np.arctan2(tip - middle_y, -middle_x) + np.arccos(lobe / to_tip)
    notch = np.pi - np.arccos(middle_x / lobe)
    angles = np.linspace(touch, notch, 24)
    right = np.stack([middle_x + lobe * np.cos(angles), middle_y + lobe * np.sin(angles)], axis=1)
    left = right[-2::-1] * [-1, 1]
    corners = np.concatenate([[[0.0, tip]], right, left])
    return corners / np.hypot(*corners.T).max()


def _svg_xy(position: np.ndarray) -> tuple[float, float]:
    return 100 * float(position[0]), 100 - 100 * float(position[1])


def _svg_points(positions: np.ndarray) -> str:
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in map(_svg_xy, positions))


def _save(image: Any, path: str | Path) -> None:
    path = Path(path)
    if path.suffix.lower() not in (".png", ".pdf"):
        raise InputError(f"{path}: cannot tell the kind of picture; let the name end in .png, .pdf or, for one, .svg")
    buffer = io.BytesIO()
    image.save(buffer, path.suffix[1:].upper())
    write_atomically(path, buffer.getvalue())
