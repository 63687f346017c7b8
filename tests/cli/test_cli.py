"""The command line, in this process where possible."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import rrn
from rrn import tasks
from rrn.cli import COMMANDS
from rrn.cli.train import default_folder
from rrn.io.files import locked
from rrn.io.pretrained import shipped
from rrn.tasks.ages.experiment import AgesExperiment

Call = Callable[..., tuple[int, str, str]]
STORY = "Ann is 20. Ann is 4 years older than Bob. Cleo is 6 younger than Bob. How old is Cleo?"


def test_help_is_instant_and_does_not_import_torch() -> None:
    script = (
        "import sys; from rrn.cli import main; code = main(['--help']); "
        "heavy = {'torch', 'numpy', 'tyro', 'rich'} & set(sys.modules); "
        "print(heavy, file=sys.stderr); sys.exit(code or bool(heavy))"
    )
    seconds = []
    for _ in range(3):
        started = time.monotonic()
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        seconds.append(time.monotonic() - started)
        assert done.returncode == 0, done.stderr
    assert min(seconds) < 0.5
    assert all(command in done.stdout for command in COMMANDS)


def test_help_fits_a_screen_of_24_lines(call: Call) -> None:
    _, out, _ = call("--help")
    lines = out.splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["solve and ask:", "train and measure:", "data:", "more:"]


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "rrn.cli", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"rrn {rrn.__version__}\n"


def test_a_warning_is_one_line_without_source_code() -> None:
    script = (
        "import sys, warnings; from rrn.cli import main; sys.argv[1:] = ['--version']; main(); warnings.warn('slow')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == "rrn: slow\n"


def test_the_installed_script_runs() -> None:
    script = Path(sys.executable).parent / "rrn"
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"rrn {rrn.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, call: Call) -> None:
    code, out, _ = call(command, "--help")
    assert code == 0
    assert f"usage: rrn {command}" in out


def test_without_a_command_there_is_help_and_an_error_code(call: Call) -> None:
    code, out, _ = call()
    assert code == 2
    assert "usage: rrn COMMAND" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "rrn: no command 'trian'; did you mean 'train'?\n"),
        (["xyz"], f"rrn: no command 'xyz'; there are {', '.join(COMMANDS)}\n"),
        (["train", "agse"], "rrn: no preset 'agse'; did you mean 'ages'?\n"),
        (["evaluate", "qqqq"], f"rrn: no preset 'qqqq'; there are {', '.join(tasks.presets())}\n"),
        (["ask", "chess"], "rrn: rrn ask: no task 'chess'; there are "),
        (["data", "chess"], "rrn: rrn data: no task 'chess'; there are "),
        (["train", "ages", "--steps", "0"], "rrn: --steps: expected at least 1, got 0\n"),
        (["train", "ages", "--batch-size", "0"], "rrn: --batch-size: expected at least 1, got 0\n"),
        (["train", "ages", "--updates", "-1"], "rrn: --updates: expected at least 1, got -1\n"),
        (["train", "sudoku", "--segment", "0"], "rrn: --segment: expected at least 1, got 0\n"),
        (["train", "ages", "--minutes", "0"], "rrn: --minutes: expected more than 0, got 0.0\n"),
        (["train", "ages", "--lr", "0"], "rrn: --lr: expected more than 0, got 0.0\n"),
        (["train", "ages", "--ema", "1"], "rrn: --ema: expected less than 1, got 1.0\n"),
        (["train", "ages", "--devices", "0"], "rrn: --devices: expected at least 1, got 0\n"),
        (["train", "ages", "--clip", "-1"], "rrn: --clip: expected more than 0, got -1.0\n"),
        (["train", "ages", "--warmup", "-5"], "rrn: --warmup: expected at least 0, got -5\n"),
        (["train", "ages", "--lr", "nan"], "rrn: --lr: expected a finite number, got nan\n"),
        (["train", "ages", "--lr", "inf"], "rrn: --lr: expected a finite number, got inf\n"),
        (["train", "ages", "--hidden", "-3"], "rrn: --hidden: expected at least 1, got -3\n"),
        (["train", "ages", "--checkpoint-minutes", "nan"], "rrn: --checkpoint-minutes: expected a finite number"),
        (["train", "ages", "--threads", "100000"], "rrn: --threads: expected at most 256, got 100000\n"),
        (
            ["train", "sudoku", "--extra-givens", "5", "3"],
            "rrn: --extra-givens: expected the smaller number first, got",
        ),
        (["train", "babi", "--tasks", "1", "21"], "rrn: --tasks: expected at most 20, got 21\n"),
        (["train", "babi", "--tasks", "1,21"], "rrn: --tasks: expected at most 20, got 21\n"),
        (["data", "sudoku", "--extra-givens", "5,2"], "rrn: --extra-givens: "),
        (["evaluate", "ages", "--limit", "0"], "rrn: --limit: expected at least 1, got 0\n"),
        (["evaluate", "ages", "--weights", "/nowhere"], "rrn: no weights '/nowhere': no such folder; shipped weights:"),
        (["data", "ages", "--count", "0"], "rrn: --count: expected at least 1, got 0\n"),
        (["ask", "ages", STORY, "--steps", "0"], "rrn: --steps: expected at least 1, got 0\n"),
    ],
)
def test_mistakes_are_named_and_exit_with_2(arguments: list[str], message: str, call: Call) -> None:
    code, out, err = call(*arguments)
    assert code == 2
    assert err.startswith(message)
    assert out == ""


def test_an_unknown_flag_exits_with_2(call: Call) -> None:
    code, _, err = call("train", "ages", "--stepz", "3")
    assert code == 2
    assert "--stepz" in err
    assert "--steps" in err


def test_presets_as_json(call: Call) -> None:
    code, out, _ = call("presets", "--json")
    rows = json.loads(out)
    assert code == 0
    assert out.count("\n") == 1
    assert [set(row) for row in rows] == [{"name", "task", "parameters", "weights", "about"}] * len(tasks.presets())
    assert [row["name"] for row in rows] == list(tasks.presets())
    assert all(isinstance(row["parameters"], int) and row["parameters"] > 0 for row in rows)
    assert all(row["about"] and row["task"] in tasks.TASKS for row in rows)
    assert [row["name"] for row in rows if row["weights"]] == [name for name in tasks.presets() if name in shipped()]


def test_presets_are_listed_within_80_columns(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = call("presets")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    titles = [line.split("  ")[0] for line in out.splitlines() if not line.startswith(" ")]
    assert titles == list(tasks.presets()), "names are whole"
    assert out.count("weights shipped") == len([name for name in shipped() if name in tasks.presets()])


def test_every_setting_is_a_flag(call: Call) -> None:
    code, out, _ = call("train", "ages", "--help")
    assert code == 0
    names = [field.name for field in dataclasses.fields(tasks.find_preset("ages"))]
    hidden = ("name", "about", "segment", "network", "stages")
    fields = [name for name in names if name not in hidden]
    assert len(fields) > 20
    missing = [name for name in (*fields, "folder", "devices") if f"--{name.replace('_', '-')}" not in out]
    assert not missing


def test_training_says_how_it_went(call: Call, tmp_path: Path, tiny_ages_flags: list[str]) -> None:
    flags = [*tiny_ages_flags, "--updates", "2", "--folder", tmp_path / "run"]
    code, out, err = call("train", "ages", *flags)
    assert (code, out) == (0, "")
    assert "finished at update 2" in err
    assert f"rrn evaluate ages --weights {tmp_path / 'run' / 'best'}" in err
    code, _, err = call("train", "ages", *flags, "--lr", "0.5")
    assert code == 2
    assert "holds a run with other settings (lr was" in err


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_run_exits_with_the_code_of_its_signal(
    number: int, expected: int, call: Call, tmp_path: Path, tiny_ages_flags: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = [*tiny_ages_flags, "--updates", "4", "--folder", tmp_path]
    with monkeypatch.context() as patched:
        patched.setattr(AgesExperiment, "observe", lambda *_: os.kill(os.getpid(), number))
        code, _, err = call("train", "ages", *flags)
    assert (code, "stopped at update 1; run the same command to resume" in err) == (expected, True)
    assert call("train", "ages", *flags)[0] == 0


def test_seeds_and_settings_have_folders_of_their_own() -> None:
    ages = tasks.find_preset("ages")
    assert default_folder(ages) == default_folder(dataclasses.replace(ages, updates=7)) == Path("runs/ages")
    assert default_folder(dataclasses.replace(ages, seed=1)) == Path("runs/ages-seed1")
    assert default_folder(dataclasses.replace(ages, message_width=8, clip=None)) == Path(
        "runs/ages-clipNone-message-width8"
    )
    pools = [default_folder(dataclasses.replace(tasks.find_preset("sudoku"), pool=(Path(name),))) for name in "ab"]
    assert len({*pools, Path("runs/sudoku")}) == 3
    long = [default_folder(dataclasses.replace(ages, start_from=Path("x" * 300 + end))) for end in "ab"]
    assert len({folder.name for folder in long}) == 2
    assert max(len(folder.name) for folder in long) < 100


def test_a_folder_that_another_process_trains_in_is_refused(
    call: Call, tmp_path: Path, tiny_ages_flags: list[str]
) -> None:
    with locked(tmp_path):
        code, _, err = call("train", "ages", *tiny_ages_flags, "--folder", tmp_path)
    assert code == 2
    assert f"rrn: {tmp_path}: in use by process {os.getpid()} on " in err
    assert "another --folder" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock"]


def test_a_diverging_run_exits_with_1(call: Call, tmp_path: Path, tiny_ages_flags: list[str]) -> None:
    wild = ["--lr", "1e30", "--warmup", "0", "--clip", "None", "--updates", "50", "--folder", tmp_path / "run"]
    code, _, err = call("train", "ages", *tiny_ages_flags, *wild)
    assert code == 1
    assert "The last good checkpoint is in" in err
    assert "--lr (now 1e+30)" in err


def test_evaluate_prints_one_json_object(call: Call, tiny_ages_run: Path, tmp_path: Path) -> None:
    out_file, figure = tmp_path / "out.json", tmp_path / "figure.png"
    written = ["--out", out_file, "--figure", figure]
    code, out, _ = call("evaluate", "ages", "--weights", tiny_ages_run / "best", "--limit", 40, "--json", *written)
    result = json.loads(out)
    assert code == 0
    assert out.count("\n") == 1
    assert json.loads(out_file.read_text()) == result
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert result["n"] == 40
    assert 0 <= result["accuracy"] <= 1
    assert sum(result["n_by_length"].values()) == 40
    weighted = sum(result["accuracy_by_length"][key] * n for key, n in result["n_by_length"].items())
    assert result["accuracy"] == pytest.approx(weighted / 40)
    assert (result["steps"], result["preset"], result["seed"]) == (8, "ages", 0)
    assert {"command", "machine", "date", "parameters", "trained"} <= set(result)


def test_evaluate_at_chosen_steps(call: Call, tiny_ages_run: Path) -> None:
    weights = ["--weights", tiny_ages_run / "best", "--limit", 20]
    _, out, _ = call("evaluate", "ages", *weights, "--steps", "12,3", "--json")
    result = json.loads(out)
    assert result["steps"] == 12
    assert all(list(figures) == ["3", "12"] for figures in result["accuracy_by_length_and_steps"].values())
    code, out, _ = call("evaluate", "ages", *weights, "--steps", "1,2")
    assert code == 0
    assert "1 step " in out
    assert "2 steps" in out
    assert "of 20 questions" in out
    for bad in ("0,3", "a", ""):
        code, _, err = call("evaluate", "ages", *weights, "--steps", bad or ",")
        assert code == 2
        assert err.startswith("rrn: --steps: expected numbers")


def test_weights_of_another_preset_of_the_task_are_measured_as_what_they_are(call: Call, tiny_ages_run: Path) -> None:
    code, out, _ = call("evaluate", "ages-paper", "--weights", tiny_ages_run / "best", "--limit", 5, "--json")
    assert code == 0
    assert json.loads(out)["preset"] == "ages"


def test_a_preset_without_weights_says_how_to_get_them(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrn.io.pretrained.shipped", lambda: [])
    code, _, err = call("evaluate", "ages-paper")
    assert code == 2
    assert "train them with 'rrn train ages-paper', then give --weights runs/ages-paper/best" in err


def test_commands_that_write_say_what_as_json(call: Call, tmp_path: Path, tiny_ages_flags: list[str]) -> None:
    few = ["--train", 1, "--valid", 1, "--test", 1]
    for name, flags in {"ages": ["--count", 3], "sudoku": ["--count", 2], "pretty-clevr": few}.items():
        code, out, err = call("data", name, "--out", tmp_path / name, *flags, "--json")
        assert code == 0, err
        assert json.loads(out)["out"] == str(tmp_path / name)
        assert out.count("\n") == 1
    code, out, err = call("train", "ages", *tiny_ages_flags, "--updates", 2, "--folder", tmp_path / "run", "--json")
    assert code == 0, err
    said = json.loads(out)
    assert (said["folder"], said["update"], said["finished"]) == (str(tmp_path / "run"), 2, True)
    assert said["best"]["update"] == 2


def test_data_written_is_data_read(call: Call, tiny_ages_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    code, _, err = call("data", "ages", "--out", folder, "--count", 30, "--seed", 5, "--split", "test")
    assert code == 0
    assert f"30 questions written to {folder}" in err
    about = json.loads((folder / "dataset.json").read_text())
    assert (about["task"], about["split"], about["count"], about["seed"]) == ("ages", "test", 30, 5)
    code, out, _ = call("evaluate", "ages", "--weights", tiny_ages_run / "best", "--data", folder, "--json")
    assert code == 0
    assert json.loads(out)["n"] == 30
    code, out, _ = call(
        "evaluate", "ages", "--weights", tiny_ages_run / "best", "--data", folder, "--limit", 7, "--json"
    )
    assert json.loads(out)["n"] == 7
    code, _, err = call("evaluate", "ages", "--weights", tiny_ages_run / "best", "--data", tmp_path)
    assert code == 2
    assert "no dataset.json in this folder" in err


def test_ask_ages_as_json(call: Call, tiny_ages_run: Path) -> None:
    code, out, _ = call("ask", "ages", STORY, "--weights", tiny_ages_run / "best", "--steps", 5, "--json")
    answer = json.loads(out)
    assert code == 0
    assert out.count("\n") == 1
    assert answer["question"] == "Cleo"
    assert [step["step"] for step in answer["steps"]] == [1, 2, 3, 4, 5]
    assert answer["answer"] == answer["steps"][-1]["answer"]
    assert answer["right"] == (answer["answer"] == 10)


def test_ask_ages_in_words(call: Call, tiny_ages_run: Path) -> None:
    story, question = STORY.removesuffix(" How old is Cleo?"), ["--question", "Bob"]
    code, out, _ = call("ask", "ages", story, *question, "--weights", tiny_ages_run / "best")
    assert code == 0
    assert "Bob is" in out
    assert "(1 difference away from the age given)" in " ".join(out.split())


def test_ask_ages_reads_standard_input(
    call: Call, tiny_ages_run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "story"
    path.write_text(STORY)
    with path.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        code, out, _ = call("ask", "ages", "--weights", tiny_ages_run / "best", "--json")
    assert code == 0
    assert json.loads(out)["question"] == "Cleo"


@pytest.mark.parametrize(
    ("story", "message"),
    [
        ("Ann is blue. How old is Ann?", "cannot read 'Ann is blue'; facts look like"),
        ("Ann is 20.", "no question: end with one such as"),
        ("Ann is 20. How old is Bob?", "'Bob' is in no fact; the facts name Ann"),
    ],
)
def test_bad_stories_are_named(story: str, message: str, call: Call) -> None:
    code, _, err = call("ask", "ages", story)
    assert code == 2
    assert err.startswith(f"rrn: {message}")
