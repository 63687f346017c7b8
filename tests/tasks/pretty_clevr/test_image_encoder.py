"""Pretty-CLEVR from pictures."""

import dataclasses

import numpy as np
import pytest
import torch

from rrn.tasks import build_network, find_preset
from rrn.tasks.pretty_clevr import data
from rrn.tasks.pretty_clevr.experiment import PrettyClevrExperiment
from rrn.tasks.pretty_clevr.figures import render
from rrn.tasks.pretty_clevr.image_encoder import CELLS, PIXELS, paint
from rrn.tasks.pretty_clevr.model import as_batch


@pytest.fixture(scope="module")
def scenes() -> data.Scenes:
    return data.sample_scenes(6, np.random.default_rng(0))


def picture(scenes: data.Scenes) -> torch.Tensor:
    return paint(
        *(
            torch.from_numpy(part).long() if part.dtype == np.uint8 else torch.from_numpy(part)
            for part in (scenes.positions, scenes.colours, scenes.shapes)
        )
    )


def test_a_picture_shows_what_the_data_sets_pictures_show(scenes: data.Scenes) -> None:
    """They have dark outlines besides, and nothing else is different."""
    pytest.importorskip("PIL")
    for index, painted in enumerate(picture(scenes)):
        ours = 1 + painted.permute(1, 2, 0).numpy()
        theirs = render(scenes.scene(index), PIXELS) / 255
        assert abs(ours - theirs).mean() < 0.01
        assert ((ours.min(-1) < 0.98) <= (theirs.min(-1) < 0.98)).mean() > 0.99


def test_moving_an_object_by_a_pixel_moves_its_picture_by_one(scenes: data.Scenes) -> None:
    one = data.Scenes(scenes.positions[:1], scenes.colours[:1], scenes.shapes[:1], scenes.paths[:1])
    moved = data.Scenes(one.positions + np.float32([1 / PIXELS, -1 / PIXELS]), one.colours, one.shapes, one.paths)
    torch.testing.assert_close(picture(moved)[..., 1:, 1:], picture(one)[..., :-1, :-1], atol=0.2, rtol=0)
    assert not torch.allclose(picture(moved), picture(one), atol=0.2)


def test_ink_covers_what_a_square_covers() -> None:
    position, colour = torch.full((1, 8, 2), 0.5), torch.full((1, 8), data.COLOURS.index("black"))
    square = torch.full((1, 8), data.SHAPES.index("square"))
    one = paint(position[:, :1], colour[:, :1], square[:, :1])
    black = 1 - 0x26 / 255
    assert float(-one.sum()) / 3 / black == pytest.approx(2 * (data.OBJECT_RADIUS * PIXELS) ** 2, rel=0.04)


def test_the_network_sees_the_picture_and_nothing_else(scenes: data.Scenes) -> None:
    """The objects in another order make the same picture, so the same answers."""
    torch.manual_seed(0)
    network = build_network(find_preset("pretty-clevr-pixels")).eval()
    batch = as_batch(scenes, np.arange(6), np.arange(6) * 9)
    order = torch.randperm(8)
    shuffled = batch | {name: batch[name][:, order] for name in ("positions", "colours", "shapes")}
    with torch.no_grad():
        said, other = network(batch, steps=3)[0], network(shuffled, steps=3)[0]
        moved = network(batch | {"positions": batch["positions"].flip(0)}, steps=3)[0]
    assert said.shape == (3, 6, 16)
    torch.testing.assert_close(said.exp().sum(-1), torch.ones(3, 6), atol=1e-4, rtol=0)
    torch.testing.assert_close(other, said, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(moved, said, atol=1e-4)


def test_an_object_is_where_its_cell_says(scenes: data.Scenes) -> None:
    network = build_network(find_preset("pretty-clevr-pixels"))
    seen = torch.zeros(1, CELLS * CELLS, 64)
    with torch.no_grad():
        network.where.bias.zero_()
        where = network.positions(seen, torch.arange(CELLS * CELLS)[None])[0].view(CELLS, CELLS, 2)
    torch.testing.assert_close(where[0, 0], torch.tensor([0.5, 0.5]) / CELLS)
    torch.testing.assert_close(where[2, 5], torch.tensor([2.5, 5.5]) / CELLS)


def test_what_is_not_shown_is_not_in_the_picture(scenes: data.Scenes) -> None:
    shown = torch.zeros(6, 8, dtype=torch.bool)
    shown[:, 3] = True
    positions, colours, shapes = (torch.from_numpy(part) for part in (scenes.positions, scenes.colours, scenes.shapes))
    few = paint(positions, colours.long(), shapes.long(), shown)
    torch.testing.assert_close(few, paint(positions[:, 3:4], colours[:, 3:4].long(), shapes[:, 3:4].long()))


def test_nodes_are_where_there_is_something_to_see(scenes: data.Scenes) -> None:
    torch.manual_seed(0)
    network = build_network(find_preset("pretty-clevr-pixels"))
    with torch.no_grad():
        _, there, cells = network.encode(picture(scenes))
        nothing = network.encode(torch.zeros(1, 3, PIXELS, PIXELS))[1]
    row, column = 1 - torch.from_numpy(scenes.positions[..., 1]), torch.from_numpy(scenes.positions[..., 0])
    nearest = [(side * CELLS).round().clamp(max=CELLS - 1).long() for side in (row, column)]  # with strides of two
    of_objects = nearest[0] * CELLS + nearest[1]
    assert (of_objects[..., None] == cells[:, None]).any(-1).float().mean() > 0.9  # before anything is learned
    assert there.max() > 0.8
    assert nothing.max() == 0


def test_objects_left_out_are_none_of_the_walk() -> None:
    preset = find_preset("pretty-clevr-pixels")
    experiment = PrettyClevrExperiment(dataclasses.replace(preset, scenes=50, batch_size=200))
    experiment.curriculum.longest = 3
    batch = experiment.sample(np.random.default_rng(0))
    walked = torch.arange(8) <= batch["jumps"][:, None]
    assert batch["shown"].gather(1, batch["path"])[walked].all()
    count = batch["shown"].sum(1)
    assert (count == 8).float().mean() > 0.1
    assert (count == batch["jumps"] + 1).float().mean() > 0.4
