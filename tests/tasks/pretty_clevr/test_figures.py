import builtins
import itertools
import xml.etree.ElementTree as ElementTree
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

from rrn.errors import InputError
from rrn.tasks.pretty_clevr import data, figures


@pytest.fixture(scope="module")
def scenes() -> data.Scenes:
    return data.scenes("test", 12)


def rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)])


@pytest.mark.parametrize("size", [64, 128, 200])
def test_image_has_its_size_and_its_colours_where_the_objects_are(scenes: data.Scenes, size: int) -> None:
    for index in range(len(scenes)):
        scene = scenes.scene(index)
        image = figures.render(scene, size)
        assert image.shape == (size, size, 3)
        assert image.dtype == np.uint8
        for (x, y), colour in zip(scene.positions, scene.colours, strict=True):
            found = image[int((1 - y) * size), int(x * size)]
            assert (found == rgb(figures.PALETTE[colour])).all()
        assert (image[0] == 255).all()
        assert (image[:, -1] == 255).all()


def test_images_are_anti_aliased(scenes: data.Scenes) -> None:
    image = figures.render(scenes.scene(0), 128).reshape(-1, 3)
    pure = {tuple(rgb(colour)) for colour in (*figures.PALETTE, figures.INK, "#FFFFFF")}
    assert sum(tuple(pixel) not in pure for pixel in image) > 200


def test_every_shape_looks_different_in_a_small_image(scenes: data.Scenes) -> None:
    size, half = 128, 9
    masks = []
    for shape in range(8):
        scene = scenes.scene(0)
        shapes = np.array([shape, *(k for k in range(8) if k != shape)], np.uint8)
        positions = scene.positions.copy()
        positions[0] = 0.5, 0.5
        positions[1:] = 0.06
        image = figures.render(data.Scene(positions, np.arange(8, dtype=np.uint8), shapes, scene.paths), size)
        masks.append((image[64 - half : 64 + half, 64 - half : 64 + half] < 250).any(-1))
    for one, other in itertools.combinations(range(8), 2):
        union = (masks[one] | masks[other]).sum()
        differing = (masks[one] ^ masks[other]).sum() / union
        assert differing > 0.15, (data.SHAPES[one], data.SHAPES[other], differing)


@pytest.mark.parametrize("shape", data.SHAPES)
def test_outlines_fit_the_disc_and_go_counterclockwise_about_the_middle(shape: str) -> None:
    corners = figures.outline(shape)
    following = np.roll(corners, -1, axis=0)
    assert np.hypot(*corners.T).max() <= 1 + 1e-9
    turns = corners[:, 0] * following[:, 1] - corners[:, 1] * following[:, 0]
    assert turns.min() > -1e-9  # seen from the middle every edge goes the same way round
    assert 0.7 < turns.sum() / 2 < 2.4


def simulated(colours: np.ndarray, matrix: list[list[float]]) -> np.ndarray:
    """CIELAB of sRGB colours as seen through a matrix on linear RGB."""
    c = colours / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ np.array(matrix).T
    to_xyz = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])
    xyz = np.clip(linear, 0, 1) @ to_xyz.T / to_xyz.sum(1)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


@pytest.mark.parametrize(
    "vision",
    [
        pytest.param([[1, 0, 0], [0, 1, 0], [0, 0, 1]], id="normal"),
        pytest.param([[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]], id="protan"),
        pytest.param([[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]], id="deutan"),
        pytest.param([[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]], id="tritan"),
    ],
)
def test_palette_is_safe_for_the_colour_blind(vision: list[list[float]]) -> None:
    seen = simulated(np.array([rgb(colour) for colour in figures.PALETTE]), vision)
    apart = [np.linalg.norm(seen[a] - seen[b]) for a, b in itertools.combinations(range(8), 2)]
    assert min(apart) > 25


def test_png_files(scenes: data.Scenes, tmp_path) -> None:
    figures.write_images(tmp_path, scenes[:3], size=64)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000000.png", "000001.png", "000002.png"]
    with Image.open(tmp_path / "000001.png") as image:
        assert (np.array(image) == figures.render(scenes.scene(1), 64)).all()


def test_svg_shows_objects_and_jumps(scenes: data.Scenes) -> None:
    scene = scenes.scene(3)
    tree = ElementTree.fromstring(figures.scene_svg(scene))
    objects = [element for element in tree.iter() if element.get("class") == "object"]
    assert {element.get("data-colour") for element in objects} == set(data.COLOURS)
    assert {element.get("data-shape") for element in objects} == set(data.SHAPES)
    assert not [element for element in tree.iter() if element.get("class") == "jump"]

    start = data.number_of("heart")
    tree = ElementTree.fromstring(figures.scene_svg(scene, start, 5))
    assert [element.text for element in tree.iter() if element.tag.endswith("text")] == ["1", "2", "3", "4", "5"]
    (answer,) = [element for element in tree.iter() if element.get("class") == "answer"]
    x, y = scene.positions[scene.path(start, 5)[-1]]
    assert float(answer.get("cx", "nan")) == pytest.approx(100 * x, abs=0.01)
    assert float(answer.get("cy", "nan")) == pytest.approx(100 - 100 * y, abs=0.01)


def test_arrows_run_between_the_objects_of_the_path(scenes: data.Scenes) -> None:
    for index in range(len(scenes)):
        scene = scenes.scene(index)
        path = scene.path(0, 7)
        arrows = figures._arrows(scene, path)
        for arrow, origin, target in zip(arrows, path, path[1:], strict=False):
            a, b = scene.positions[origin], scene.positions[target]
            along = (b - a) / np.linalg.norm(b - a)
            assert 0 < np.dot(arrow.tail - a, along) < np.dot(arrow.head - a, along) < np.linalg.norm(b - a)
            assert np.linalg.norm(arrow.tail - a) < data.OBJECT_RADIUS + 0.02
            assert np.linalg.norm(arrow.head - b) < data.OBJECT_RADIUS + 0.02


def test_figures_for_papers(scenes: data.Scenes, tmp_path) -> None:
    figures.draw_contact_sheet(tmp_path / "sheet.png", scenes, columns=4)
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.width > 1500
        assert sheet.width / sheet.height == pytest.approx(4 / 3, abs=0.03)
        shown = {colour for _, colour in sheet.convert("RGB").getcolors(1 << 20)}
    assert {tuple(int(part) for part in rgb(colour)) for colour in figures.PALETTE} <= shown

    figures.draw_question(tmp_path / "question.pdf", scenes.scene(0), data.number_of("green"), 3)
    assert (tmp_path / "question.pdf").read_bytes().startswith(b"%PDF")
    figures.draw_question(tmp_path / "none.png", scenes.scene(0), data.number_of("star"), 0)
    with pytest.raises(InputError, match=r"\.png, \.pdf or, for one, \.svg"):
        figures.draw_question(tmp_path / "scene.bmp", scenes.scene(0), 3, 3)
    with pytest.raises(InputError, match="at least one"):
        figures.draw_contact_sheet(tmp_path / "sheet.png", scenes[:0])


def test_a_missing_extra_is_named(scenes: data.Scenes, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_figures(name: str, *rest: Any, **named: Any) -> ModuleType:
        if name.split(".")[0] in ("PIL", "matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without_figures)
    with pytest.raises(InputError, match=r"rrn\[figures\]"):
        figures.render(scenes.scene(0))
    with pytest.raises(InputError, match=r"rrn\[figures\]"):
        figures.draw_question(tmp_path / "scene.png", scenes.scene(0), 3, 3)
    figures.draw_question(tmp_path / "scene.svg", scenes.scene(0), 3, 3)
    root = ElementTree.parse(tmp_path / "scene.svg").getroot()
    assert root[0].text == data.describe_question(scenes.scene(0), 3, 3)


def test_an_unknown_shape_is_refused() -> None:
    with pytest.raises(InputError, match="circle, square"):
        figures.outline("blob")
