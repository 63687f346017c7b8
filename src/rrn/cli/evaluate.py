"""rrn evaluate PRESET: measure weights on unseen data."""

import sys
from functools import partial

from rrn import tasks
from rrn._compat import keep_freed_memory
from rrn.cli import parse, progress_bars, show_result
from rrn.errors import InputError, plural
from rrn.tasks.evaluation import EvaluateOptions, loses_answers, provenance, step_list
from rrn.training.presets import Preset

HELP = """usage: rrn evaluate PRESET [--weights DIR] [--data PATH] [--limit N] [--steps A,B,…] [--json] …

Presets: {names}.
'rrn evaluate PRESET --help' lists every flag."""


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(HELP.format(names=", ".join(tasks.presets())))
        return 0 if arguments else 2
    named = tasks.find_preset(arguments[0])
    module = tasks.folder(named.task, "evaluate")
    about = f"Measure {named.name}: {named.about}"
    options: EvaluateOptions = parse(module.Options, arguments[1:], f"rrn evaluate {named.name}", about)
    from rrn.inference.devices import find_device, place
    from rrn.io.pretrained import shipped
    from rrn.tasks.weights import from_pretrained
    from rrn.viewing.plots import check_figure

    check_figure(options.figure)
    source = options.weights or named.name
    if options.weights is None and named.name not in shipped():
        raise InputError(
            f"no weights ship for {named.name!r}; train them with 'rrn train {named.name}', "
            f"then give --weights runs/{named.name}/best"
        )
    network = from_pretrained(source, task=named.task)
    preset: Preset = network.preset
    if options.steps and step_list(options.steps)[-1] > preset.steps and loses_answers(preset, source, shipped()):
        message = (
            f"warning: {preset.name} was trained for {plural(preset.steps, 'step')}; at later steps, right answers"
        )
        print(f"{message} may become wrong", file=sys.stderr)
    keep_freed_memory()
    device = find_device(options.device)
    place(network, device)
    with progress_bars() as progress:
        result = module.evaluate(network, preset, options, partial(progress, "evaluating"))
    result |= provenance(network.config) | {"device": str(device)}
    print(f"measured on {device}", file=sys.stderr)
    show_result(result, options, module.tables(result), module.draw_result)
    return 0
