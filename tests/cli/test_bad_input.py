"""Whatever is typed, piped in or named: an answer, or one line that says what is wrong, and no traceback."""

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rrn.cli import main
from rrn.tasks.sudoku.examples import EXAMPLES

Call = Callable[..., tuple[int, str, str]]
STORY = "Ann is 20. Ann is 4 older than Bob. How old is Bob?"
LONG = "x" * 5000


def refused(call: Call, *arguments: object) -> str:
    """What is said, in one line, by a command that refuses."""
    code, out, err = call(*arguments)
    assert (code, out) == (2, ""), err
    assert err.startswith("rrn: ")
    assert err.count("\n") == 1
    assert len(err) < 900
    return err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ask", "ages", STORY, "--weights", "sudoku"], "weights 'sudoku': for the task 'sudoku', not for 'ages'"),
        (["ask", "babi", "Mary left.", "Where is Mary?", "--weights", "ages"], "for the task 'ages', not for 'babi'"),
        (["ask", "pretty-clevr", "--weights", "ages"], "for the task 'ages', not for 'pretty-clevr'"),
        (["solve", EXAMPLES[0], "--weights", "ages"], "for the task 'ages'"),
        (["ask", "ages", f"Ann is {'9' * 5000}. How old is Ann?"], "cannot read 'Ann is 9999"),
        (["ask", "ages", f"{LONG} is 20. How old is {LONG}?"], "cannot read 'xxx"),
        (["ask", "ages", "Ann is 20.", "--question", LONG], "is in no fact"),
        (["ask", "ages", STORY, "--seed", "-1"], "--seed: expected at least 0, got -1"),
        (["ask", "ages", STORY, "--seed", "9" * 40], "--seed: expected at most 4,294,967,295, got 9999"),
        (["ask", "pretty-clevr", "--seed", "9" * 40], "--seed: expected at most"),
        (["ask", "pretty-clevr", "--jumps", "8"], "--jumps: expected at most 7, got 8"),
        (["ask", "babi", f"Mary went to the {LONG}.", "Where is Mary?"], "does not know the word 'xxx"),
        (["solve", EXAMPLES[0], "--seed", "-1"], "--seed: expected at least 0, got -1"),
        (["solve", EXAMPLES[0], "--seed", "9" * 40], "--seed: expected at most"),
        (["solve", EXAMPLES[0], "--max-steps", "9" * 9], "--max-steps: expected at most 100,000"),
        (["solve", LONG], "5000 cells where a puzzle has"),
        (["solve", EXAMPLES[0], "--weights", LONG], "no weights 'xxx"),
        (["data", "ages", "--seed", "-1"], "--seed: expected at least 0, got -1"),
        (["data", "babi", "--train", "-1"], "--train: expected at least 0, got -1"),
        (["evaluate", "ages", "--steps", "9" * 5000], "--steps: expected numbers such as 32,64, got '999"),
        (["evaluate", "ages", "--steps", "9" * 20], "--steps: expected numbers of at least 1 and at most 100,000"),
        (["evaluate", "ages", "--data", LONG], "xxx"),
        ([LONG], "no command 'xxx"),
        (["train", LONG], "no preset 'xxx"),
        (["ask", LONG], "no task 'xxx"),
    ],
)
def test_bad_arguments_are_named_in_a_line(arguments: list[str], message: str, call: Call) -> None:
    assert message in refused(call, *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["solve", EXAMPLES[0], "--max-steps", "2", "--attempts", "1", "--gif"],
        ["solve", EXAMPLES[0], "--max-steps", "2", "--attempts", "1", "--png"],
        ["evaluate", "ages", "--limit", "3", "--out"],
        ["evaluate", "ages", "--limit", "3", "--figure"],
        ["ask", "pretty-clevr", "--out"],
        ["data", "ages", "--count", "1", "--out"],
        ["data", "sudoku", "--count", "1", "--out"],
        ["data", "babi", "--train", "1", "--valid", "0", "--test", "0", "--out"],
        ["data", "pretty-clevr", "--train", "1", "--valid", "1", "--test", "1", "--out"],
        ["train", "ages", "--updates", "1", "--folder"],
    ],
)
def test_what_cannot_be_written_is_named(arguments: list[str], call: Call, tmp_path: Path) -> None:
    """A path below a file cannot be written, and no name may be that long."""
    (tmp_path / "file").write_text("")
    for where in (tmp_path / "file" / "deep.png", tmp_path / f"{LONG}.png"):
        code, out, err = call(*arguments, where)
        assert (code, out) == (2, ""), err
        said = err.strip().splitlines()[-1]
        assert said.startswith("rrn: ")
        assert len(said) < 700
        assert "Traceback" not in err


def test_stories_with_markup_are_shown_as_they_are(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for story in ("Mary [/] went to the [bold]kitchen.", "Mary went [red] to the kitchen [/red]."):
        code, out, err = call("ask", "babi", story, "Where is [/bold] Mary?")
        if code == 0:
            assert story in " ".join(out.split("\n"))
        else:
            assert "does not know the word" in err
    code, out, _ = call("ask", "babi", "Mary [/] went to the [kitchen].", "Where is [/] Mary?")
    assert code == 0
    assert "Mary [/] went to the [kitchen]." in out
    assert "Where is [/] Mary?" in out
    monkeypatch.setattr(sys, "stdin", io.StringIO("[/]\n" + STORY))
    assert "cannot read '[/]'" in refused(call, "ask", "ages")


@pytest.mark.parametrize("command", [["solve", "-"], ["ask", "ages"], ["ask", "babi"]])
def test_standard_input_that_is_closed_or_no_text(
    command: list[str], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    refused(call, *command)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe\x00"), encoding="utf-8"))
    assert "standard input: not text" in refused(call, *command)


def run(*arguments: str, **options: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "rrn.cli", *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, **options)  # type: ignore[call-overload]


def test_output_that_cannot_be_written_is_an_error_in_a_line() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with open("/dev/full", "w") as full:
        done = run("--help", stdout=full)
    assert (done.returncode, done.stderr) == (2, "rrn: output: No space left on device\n")


def test_terminals_that_know_ascii_alone() -> None:
    done = run("--help", stdout=subprocess.PIPE, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: rrn COMMAND ?" in done.stdout


def test_streams_that_are_closed_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    assert main(["--version"]) == 0
    assert main(["nothing"]) == 2


def test_a_lack_of_memory_is_said_in_a_line(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*_: object, **__: object) -> None:
        raise errors.pop()

    monkeypatch.setattr("rrn.tasks.ages.predict.predict", short)
    errors: list[Exception] = [
        MemoryError("Unable to allocate 8.00 TiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."),
    ]
    for _ in range(2):
        assert "not enough memory" in refused(call, "ask", "ages", STORY)
    errors.append(RuntimeError("a mistake of ours"))
    with pytest.raises(RuntimeError, match="a mistake of ours"):  # which should be seen, and mended
        call("ask", "ages", STORY)
