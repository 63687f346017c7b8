import numpy as np
import torch

from rrn.tasks.sudoku.baselines.convolutional import ConvolutionalSudoku
from rrn.tasks.sudoku.baselines.factor_graph import fill_most_probable
from rrn.tasks.sudoku.exact import generate


def test_the_most_probable_digit_of_an_empty_cell_is_filled_in() -> None:
    grids = torch.zeros(2, 81, dtype=torch.long)
    grids[0, 3] = 7
    grids[1] = 1
    logits = torch.zeros(2, 81, 9)
    logits[0, 3, 0] = 9.0
    logits[0, 50, 4] = 5.0
    logits[0, 60, 2] = 4.0
    filled = fill_most_probable(grids, logits)
    assert filled[0].nonzero().flatten().tolist() == [3, 50]
    assert (int(filled[0, 3]), int(filled[0, 50])) == (7, 5)
    assert torch.equal(filled[1], grids[1])


def test_a_step_is_one_look_and_one_digit() -> None:
    puzzles, _ = generate(4, np.random.default_rng(0))
    batch = {"puzzle": torch.from_numpy(puzzles).long()}
    network = ConvolutionalSudoku(4).eval()
    whole, state = network(batch, steps=5)
    assert whole.shape == (5, 4 * 81, 9)
    assert ((state.h.view(4, 81) > 0).sum(1).numpy() == (puzzles > 0).sum(1) + 5).all()
    first, middle = network(batch, steps=2)
    torch.testing.assert_close(torch.cat([first, network(batch, steps=3, state=middle)[0]]), whole)


def test_every_cell_is_seen_from_the_middle() -> None:
    """Ten layers of 3 x 3 filters reach over the whole grid."""
    network = ConvolutionalSudoku(8).eval()
    grid = torch.randint(1, 10, (1, 81))
    image = torch.nn.functional.one_hot(grid, 10).float().view(1, 9, 9, 10).permute(0, 3, 1, 2).requires_grad_()
    network.digits(network.layers(image))[0, :, 4, 4].sum().backward()
    assert (image.grad.abs().sum((0, 1)) > 0).all()
