import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
os.environ["OMP_NUM_THREADS"] = "1"  # also of the processes that tests start

import torch  # noqa: E402

from rrn.cli import main  # noqa: E402

TINY_AGES = ["--hidden", "16", "--message-width", "16", "--update-width", "16", "--batch-size", "8"]
"""Flags that make the preset ``ages`` small enough for a test."""


@pytest.fixture(autouse=True)
def _one_thread_and_one_seed() -> Iterator[None]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="session")
def tiny_ages_flags() -> list[str]:
    return [*TINY_AGES, "--minutes", "None"]


@pytest.fixture(scope="session")
def tiny_ages_run(tmp_path_factory: pytest.TempPathFactory, tiny_ages_flags: list[str]) -> Path:
    """The folder of the first stage of a tiny network, trained for six updates; its weights are in ``best``."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    flags = ["--updates", "6", "--stage", "1", "--folder", str(folder), "--quiet"]
    assert main(["train", "ages", *tiny_ages_flags, *flags]) == 0
    return folder / "stage-1"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run ``rrn …`` in this process: exit code, standard output, standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        return code, *capsys.readouterr()

    return run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tests that need a browser must not go missing quietly."""
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if "NO BROWSER" in str(report.longrepr)]
    if skipped:
        reason = str(skipped[0].longrepr[-1] if isinstance(skipped[0].longrepr, tuple) else skipped[0].longrepr)
        terminalreporter.write_line(f"{len(skipped)} TESTS OF THE PAGE WERE SKIPPED. {reason}", red=True, bold=True)
