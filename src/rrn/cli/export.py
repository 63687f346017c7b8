"""rrn export: write a network as an ONNX file, which runs without this library and without torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rrn import tasks
from rrn.cli import parse, report
from rrn.errors import InputError
from rrn.training.presets import Json, Steps

if TYPE_CHECKING:
    from torch.export import ExportedProgram

HELP = """usage: rrn export sudoku|FOLDER [--out FILE] [--what step|run|start] [--steps N] [--weights DIR]

Writes ONNX: the Sudoku network, or a custom network (a folder written by RRN.save_pretrained).
'rrn export sudoku --help' lists every flag; docs/your-own-graph.md shows how to run the file."""
EXPORTED_TASKS = ("sudoku",)


@dataclass(frozen=True)
class Options:
    out: Path = Path("step.onnx")
    """The file to write."""
    what: Literal["step", "run", "start"] = "step"
    """step: state in, state and answer out. run: all --steps at once. start: the initial state."""
    steps: Steps = 32
    """Number of steps of a run."""
    weights: str | None = None
    """For a preset: a folder of weights, or a hub id. Default: the shipped weights."""
    json: Json = False


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(HELP)
        return 0 if arguments else 2
    name, *flags = arguments
    options = parse(Options, flags, f"rrn export {name}", "Write a network as an ONNX file.")
    from rrn.io.export import check_onnx, write_onnx

    check_onnx(options.out)
    custom = name not in tasks.presets() and Path(name).is_dir()
    program = _custom_program(Path(name), options) if custom else _preset_program(name, options)
    write_onnx(program, options.out)
    size = options.out.stat().st_size
    fields = {"out": str(options.out), "of": name, "what": options.what, "bytes": size}
    return report(f"written: {options.out} ({size / 1024:.0f} kB)", fields, options.json)


def _preset_program(name: str, options: Options) -> "ExportedProgram":
    preset = tasks.find_preset(name)
    if preset.task not in EXPORTED_TASKS:
        raise InputError(f"no export for the task {preset.task!r}; supported: {', '.join(EXPORTED_TASKS)}")
    from rrn.tasks.weights import from_pretrained

    module = tasks.folder(preset.task, "export")
    network = from_pretrained(options.weights or name)
    if options.what == "run":
        return module.run_program(network, options.steps)
    return module.step_program(network) if options.what == "step" else module.start_program(network)


def _custom_program(folder: Path, options: Options) -> "ExportedProgram":
    """Trace the network on a small example graph; the program runs on graphs of any size."""
    import torch

    from rrn import RRN
    from rrn.io.export import run_program, start_program, step_program

    if options.weights is not None:
        raise InputError("--weights: needs a preset; for a custom network give only its folder")
    network = RRN.from_pretrained(folder)
    x, edge_index = torch.randn(4, network.features), torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
    edge_attr = torch.randn(5, network.edge_features) if network.edge_features else None
    batch = torch.tensor([0, 0, 1, 1]) if network.settings["readout"] == "graph" else None
    if options.what == "start":
        return start_program(network, x)
    if options.what == "step":
        return step_program(network, x, edge_index, edge_attr, batch)
    return run_program(network, x, edge_index, edge_attr, batch, steps=options.steps)
