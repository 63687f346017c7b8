import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rrn.errors import InputError
from rrn.tasks.sudoku import evaluate, figures
from rrn.tasks.sudoku.evaluate import draw_result
from rrn.tasks.sudoku.exact import generate
from rrn.tasks.sudoku.figures import MOST_FRAMES, draw_gif, draw_steps_png

Image = pytest.importorskip("PIL.Image")
LIMIT = 1_500_000


def a_run(steps: int, *, solved: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """A puzzle and probabilities (steps, 81, 9) that move, noisily, towards its solution, or towards nonsense."""
    rng = np.random.default_rng(2)
    puzzles, solutions = generate(1, rng)
    goal = np.eye(9)[(solutions[0] if solved else rng.permutation(solutions[0])) - 1]
    share = (np.arange(1, steps + 1) / steps)[:, None, None] ** 2
    noise = rng.dirichlet(np.full(9, 0.3), size=(steps, 81))
    return puzzles[0], share * goal + (1 - share) * noise


def frames_of(content: bytes) -> list[tuple[int, Any]]:
    """Duration and picture of each frame."""
    with Image.open(io.BytesIO(content)) as animation:
        found = []
        for number in range(animation.n_frames):
            animation.seek(number)
            found.append((animation.info["duration"], animation.convert("RGB")))
        return found


def test_a_gif_has_a_frame_per_step_and_stays_on_the_answer(tmp_path: Path) -> None:
    puzzle, steps = a_run(12)
    draw_gif(tmp_path / "run.gif", puzzle, steps)
    frames = frames_of((tmp_path / "run.gif").read_bytes())
    assert len(frames) == 1 + 12 + 1, "before the first step, after each, and the answer"
    durations = [duration for duration, _ in frames]
    assert durations[-1] >= 3000
    assert max(durations[:-1]) < 2000
    assert {picture.size for _, picture in frames} == {(figures.SIDE, figures.SIDE + figures.CAPTION)}
    assert list(tmp_path.iterdir()) == [tmp_path / "run.gif"]


def test_a_gif_of_a_long_and_restless_run_stays_small(tmp_path: Path) -> None:
    draw_gif(tmp_path / "run.gif", *a_run(150, solved=False))
    content = (tmp_path / "run.gif").read_bytes()
    assert len(content) < LIMIT
    assert len(frames_of(content)) <= MOST_FRAMES


def test_the_last_frame_shows_the_solution_however_unsure_and_givens_set_apart(tmp_path: Path) -> None:
    puzzle, steps = a_run(3)
    steps = 0.4 * steps + 0.6 / 9
    draw_steps_png(tmp_path / "run.png", puzzle, steps, [3])
    with Image.open(tmp_path / "run.png") as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(int)
    for cell in range(81):
        top, left = (figures.MARGIN + place * figures.CELL + 4 for place in divmod(cell, 9))
        inside = pixels[top : top + figures.CELL - 8, left : left + figures.CELL - 8]
        background = inside[0, 0]
        expected = figures.GIVEN_CELL if puzzle[cell] else figures.PAPER
        assert np.abs(background - expected).max() < 6
        assert (np.abs(inside - background).max(-1) > 100).mean() > 0.05, "a large digit in every cell"
    reddish = (pixels[..., 0] - pixels[..., 1]) > 80
    assert not reddish.any()


def test_the_answer_says_how_it_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    panel = figures._panel
    monkeypatch.setattr(
        figures, "_panel", lambda p, c, caption, *rest: (said.append(caption), panel(p, c, caption, *rest))[1]
    )
    puzzle, steps = a_run(2)
    draw_gif(tmp_path / "run.gif", puzzle, steps, attempt=3)
    draw_gif(tmp_path / "run.gif", puzzle, steps[-1:])
    draw_gif(tmp_path / "run.gif", *a_run(2, solved=False))
    assert said == [
        "step 0", "step 1", "step 2", "solved in 2 steps, attempt 3",
        "step 0", "step 1", "solved in 1 step",
        "step 0", "step 1", "step 2", "not solved after 2 steps",
    ]  # fmt: skip


def test_what_clashes_is_red_and_only_at_the_end(tmp_path: Path) -> None:
    puzzle, steps = a_run(4, solved=False)
    reddish = []
    for step in (3, 4):
        draw_steps_png(tmp_path / "run.png", puzzle, steps, [step])
        with Image.open(tmp_path / "run.png") as picture:
            pixels = np.asarray(picture.convert("RGB")).astype(int)
        reddish.append(int(((pixels[..., 0] - pixels[..., 1]) > 80).sum()))
    assert reddish[0] == 0
    assert reddish[1] > 1000


def test_chosen_steps_stand_side_by_side(tmp_path: Path) -> None:
    puzzle, steps = a_run(9)
    draw_steps_png(tmp_path / "run.png", puzzle, steps, [9, 0, 4, 4])
    with Image.open(tmp_path / "run.png") as picture:
        assert picture.size == (3 * figures.SIDE, figures.SIDE + figures.CAPTION)
    assert (tmp_path / "run.png").stat().st_size < 200_000


@pytest.mark.parametrize(
    ("name", "shape", "steps", "message"),
    [
        ("run.gif", (3, 81, 9), [1], r"run.gif: expected a name that ends in .png"),
        ("run.png", (81, 9), [1], r"expected the shape \(steps, 81, 9\), got \(81, 9\)"),
        ("run.png", (0, 81, 9), [0], r"expected the shape \(steps, 81, 9\)"),
        ("run.png", (3, 81, 9), [0, 4], "steps to draw: expected some of 0 to 3, got 0, 4"),
        ("run.png", (3, 81, 9), [], "steps to draw: expected some of 0 to 3, got none"),
    ],
)
def test_what_cannot_be_drawn_is_named(
    name: str, shape: tuple[int, ...], steps: list[int], message: str, tmp_path: Path
) -> None:
    puzzle, _ = a_run(1)
    with pytest.raises(InputError, match=message):
        draw_steps_png(tmp_path / name, puzzle, np.full(shape, 1 / 9), steps)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("givens", [[17], list(range(17, 45))])
def test_the_papers_figure(givens: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    save = evaluate.save
    monkeypatch.setattr(evaluate, "save", lambda figure, path: (drawn.append(figure), save(figure, path)))
    solved = {str(g): {str(t): t / 64 for t in (1, 2, 4, 32, 64)} for g in givens}
    result = {"accuracy_by_givens_and_steps": solved, "training_steps": 32, "preset": "sudoku", "n": 1800}
    draw_result(result, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    (axes,) = drawn[0].axes
    *lines, dashed = axes.get_lines()
    assert [line.get_label() for line in lines] == list(map(str, givens))
    assert list(lines[0].get_xdata()) == [1, 2, 4, 32, 64]
    assert list(lines[0].get_ydata()) == [1 / 64, 2 / 64, 4 / 64, 0.5, 1]
    assert dashed.get_linestyle() == "--"
    assert set(dashed.get_xdata()) == {32}


def test_accuracy_against_compute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {"1": 0.0, "8": 0.25, "128": 0.5, "300": 0.75}
    drawn: list[Any] = []
    monkeypatch.setattr(evaluate, "save", lambda figure, path: drawn.append(figure))
    result = {"accuracy_by_total_steps": shares, "steps": [50, 100], "attempts": 3, "preset": "sudoku", "n": 4}
    draw_result(result, tmp_path / "figure.png")
    curve, dashed = drawn[0].axes[0].get_lines()
    assert list(curve.get_xdata()) == list(map(int, shares))
    assert list(curve.get_ydata()) == list(shares.values())
    assert set(dashed.get_xdata()) == {100}
