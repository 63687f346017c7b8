// Sudoku: the probability of each digit in each cell, step by step, and the influence of groups on a cell.

import { sudoku as backend } from "../backend.js";
import { Grid, LEAST_INFLUENCE } from "../board.js";
import { lineChart } from "../chart.js";
import { counted, h, labelled, percent } from "../dom.js";
import { CELLS, asDigits, asText, empty, sizeOf, symbol, symmetricVariant, whereIs } from "../grid.js";
import { Latest } from "../latest.js";
import { photoControls } from "./photo.js";
import { about, bar, verdict } from "../parts.js";
import { Player } from "../player.js";
import { shareButton, writeAddress } from "../share.js";

const STEPS = [32, 64, 128, 256];
const ATTEMPTS = [1, 3, 9];
const MOST_STEPS = { 16: 128 }; // of a puzzle, by size
const NONE = "none";
const POINTING = 120; // milliseconds before the cell under the pointer is explained
const GROUPS = ["its own digits", "row", "column", "box"]; // in the order of the backend

const certain = (answer) => asDigits(answer).map((digit, _, { length }) => Array.from({ length: Math.sqrt(length) }, (_, k) => Number(k + 1 === digit)));
const select = (options, onchange = () => {}) => h("select", { onchange }, options.map(([value, text]) => h("option", { value }, text)));

function legend() {
  const sample = (kind, ...digits) => h("span", { class: `sample ${kind}`, "aria-hidden": "true" }, digits);
  return h(
    "ul",
    { class: "legend", "aria-label": "Legend" },
    h("li", {}, sample("", h("b", {}, "7"), h("small", {}, "2")), "size: probability"),
    h("li", {}, sample("given", "5"), "given"),
    h("li", {}, sample("clash", "4"), "red: clash"),
    h("li", {}, sample("influence"), "point at a cell: which groups influence it"),
  );
}

export async function create(info, section) {
  const examples = await backend.examples();
  const solving = new Latest();
  const reading = new Latest();
  const asking = new Latest();
  const status = verdict();
  let givens = empty();
  let readText = ""; // the text that the givens were read from
  let found = null;
  let second = null; // what the network beside it found
  let chart = null;
  let clashCount = 0;
  let pointed = null;
  let pointing = null;
  let seed = 0;

  const grid = new Grid({ onedit: (digits) => setPuzzle(digits), onpaste: paste, onenter: () => solve(), onpoint: point });
  const besideArea = h("div", { class: "beside" });
  let beside = null; // grid and status of the second network
  const stepsOf = () => Math.max(found.steps, second?.steps ?? 0);
  const player = new Player(showStep, 0, (step) => (step > stepsOf() ? "Answer" : `Step ${step} of ${stepsOf()}`));
  const chartArea = h("div", { class: "chart-area" });
  const influence = h("div", { class: "influence", role: "status", "aria-live": "polite" });
  const text = h("textarea", { class: "cells", rows: 2, spellcheck: "false", autocomplete: "off", maxlength: 1000 });
  text.addEventListener("input", () => text.value.trim() && read(text.value, () => {}));
  const photo = photoControls({ area: section, status, onread: (digits) => setPuzzle(digits, { fromPhoto: true }) });
  const choice = h("select", {
    onchange: () => {
      if (!choice.value) return;
      setPuzzle(asDigits(choice.value), { keepChoice: true });
      solve();
    },
  });
  const solveButton = h("button", { type: "button", class: "primary", onclick: () => solve() }, "Solve");
  const pad = h("div", { class: "pad", role: "group", "aria-label": "Type into the selected cell" });
  const others = Object.entries(info.others ?? {});
  const networks = [["", `Default (${counted(info.parameters, "weight")})`], ...others.map(([name, weights]) => [name, `${name} (${counted(weights, "weight")})`])];
  const network = select(networks, () => solve());
  const compared = select([[NONE, "None"], ...networks], () => solve());
  const steps = select(STEPS.map((count) => [count, `${count}`]), () => solve());
  const attempts = select(ATTEMPTS.map((count) => [count, `${count}`]), () => solve());
  steps.value = 128;
  attempts.value = 9;
  const size = select(backend.sizes.map((count) => [count, `${count} × ${count}`]), () => setPuzzle(empty(Number(size.value))));
  size.value = 9;
  const settings = h(
    "details",
    { class: "settings" },
    h("summary", {}, "Network, steps and size"),
    h(
      "div",
      { class: "choices" },
      others.length ? labelled("Network", network) : null,
      others.length ? labelled("Second network beside it", compared) : null,
      labelled("Steps of an attempt", steps),
      labelled("Attempts", attempts),
      backend.sizes.length > 1 ? labelled("Size", size) : null,
    ),
  );

  section.append(
    about(info),
    h(
      "div",
      { class: "columns" },
      h("div", { class: "board" }, grid.element, player.element, besideArea, legend()),
      h(
        "div",
        { class: "side" },
        h(
          "div",
          { class: "buttons" },
          solveButton,
          h("button", { type: "button", onclick: surprise }, "Surprise me"),
          h("button", { type: "button", onclick: () => setPuzzle(empty(grid.size)) }, "Clear"),
          shareButton(),
          photo.buttons,
        ),
        status.element,
        photo.shown,
        influence,
        labelled("Example", choice),
        labelled("Or type or paste a puzzle", text),
        settings,
        pad,
        grid.hint,
        chartArea,
      ),
    ),
  );

  choice.append(h("option", { value: "" }, "Choose …"));
  for (const example of examples) choice.append(h("option", { value: example.puzzle }, example.name));

  function padButton(label, name, digit) {
    const onclick = () => {
      grid.type(digit);
      grid.cells[grid.at].element.focus();
    };
    return h("button", { type: "button", "aria-label": name, onclick }, label);
  }

  function fillPad() {
    if (pad.childElementCount === grid.size + 1) return;
    const digits = Array.from({ length: grid.size }, (_, k) => padButton(symbol(k + 1), `Type ${symbol(k + 1)}`, k + 1));
    pad.replaceChildren(...digits, padButton("⌫", "Clear the cell", 0));
  }

  // Removes the result, its player and its marks, and cancels requests.
  function reset() {
    solving.drop();
    reading.drop();
    found = null;
    second = null;
    besideArea.replaceChildren();
    chart = null;
    chartArea.replaceChildren();
    player.clear();
    explain();
    solveButton.disabled = false;
    status.clear();
    const clashing = grid.show(givens, null);
    fillPad();
    size.value = grid.size;
    return clashing;
  }

  function setPuzzle(digits, { keepText = false, keepChoice = false, fromPhoto = false } = {}) {
    givens = digits;
    if (!fromPhoto) photo.clear();
    if (!keepText) text.value = digits.some(Boolean) ? asText(digits) : "";
    if (!keepChoice) choice.value = examples.some((example) => example.puzzle === asText(digits)) ? asText(digits) : "";
    readText = text.value;
    writeAddress(info.task, shared());
    if (reset().size) status.bad("Clash", "Two equal digits share a row, a column or a box; they are marked.");
  }

  // Whether a text is a puzzle, which is then shown; otherwise `refuse` gets the reason.
  async function read(typed, refuse) {
    let answer;
    try {
      answer = await reading.run((signal) => backend.read({ text: typed }, signal));
    } catch (error) {
      answer = { puzzle: null, message: error.message };
    }
    if (answer?.puzzle) setPuzzle(asDigits(answer.puzzle), { keepText: true });
    else if (answer) refuse(answer.message);
    return Boolean(answer?.puzzle);
  }

  function refuse(message) {
    setPuzzle(empty(grid.size), { keepText: true });
    readText = null;
    status.bad("Not a puzzle", message);
  }

  async function paste(pasted) {
    text.value = pasted;
    reset();
    if (await read(pasted, refuse)) {
      text.value = readText = asText(givens);
      solve();
    }
  }

  function surprise() {
    const solvable = examples.filter((example) => example.solvable);
    setPuzzle(symmetricVariant(asDigits(solvable[Math.floor(Math.random() * solvable.length)].puzzle)));
    solve();
  }

  function showStep(step) {
    const answered = step > stepsOf();
    const at = (result) => (step > result.steps ? certain(result.answer) : step ? result.probabilities[step - 1] : null);
    clashCount = grid.show(givens, at(found)).size;
    if (second) {
      beside.grid.show(givens, at(second));
      if (step > second.steps) showSecond();
      else beside.status.clear();
    }
    chart.mark(Math.min(step, found.steps));
    if (answered) showResult();
    explain();
  }

  function point(cell) {
    clearTimeout(pointing);
    pointed = cell;
    pointing = setTimeout(explain, POINTING);
  }

  // Shows which groups influence the cell under the pointer in the step shown.
  async function explain() {
    const cell = pointed;
    const step = found ? Math.min(player.step, found.steps) : 0;
    const where = cell === null ? "" : whereIs(cell, grid.size);
    const note = (sentence, shades = null) => {
      grid.shade(shades && cell, shades);
      influence.replaceChildren(...(sentence ? [h("p", {}, sentence)] : []));
    };
    asking.drop();
    if (cell === null || !step) return note("");
    if (givens[cell]) return note(`${where} is given: no group influences it.`, [0, 0, 0, 0]);
    if (givens.length !== CELLS || network.value) return note("Influence is shown for the default network and puzzles of 9 × 9.");
    if (found.attempts > 1) return note("Influence is shown for puzzles that the first attempt solves.");
    try {
      const answer = await asking.run((signal) => backend.influence({ puzzle: asText(givens), step }, signal));
      if (!answer || pointed !== cell) return;
      const shares = answer.influence[cell];
      const order = shares.map((_, group) => group).sort((a, b) => shares[b] - shares[a]);
      const chances = found.probabilities[step - 1][cell];
      const most = Math.max(...chances);
      const now = h("strong", {}, `${where}, step ${step}: ${chances.indexOf(most) + 1} at ${percent(most)}.`);
      grid.shade(cell, shares);
      if (shares[order[0]] < LEAST_INFLUENCE) {
        influence.replaceChildren(h("p", {}, now, " No group influences this cell in this step."));
        return;
      }
      influence.replaceChildren(
        h("p", {}, now, " Which groups influence this cell? Change of its probabilities without the messages of:"),
        h("ul", {}, order.map((group) => h("li", {}, h("span", {}, GROUPS[group]), bar(shares[group]), percent(shares[group])))),
      );
    } catch (error) {
      note(error.message);
    }
  }

  const solvedIn = (result) => `In ${counted(result.steps, "step")}${result.attempts > 1 ? ` of attempt ${result.attempts}` : ""}.`;

  function showSecond() {
    if (second.solved) beside.status.good("Solved", solvedIn(second));
    else beside.status.bad("Not solved", `${counted(second.attempts, "attempt")} of ${second.limit} steps failed.`);
  }

  function showResult() {
    if (found.solved) {
      const larger = found.fallback ? " The larger network was used." : "";
      status.good("Solved", `${solvedIn(found)}${larger} Every row, column and box holds each digit once.`);
      return;
    }
    const marked = clashCount ? ` ${clashCount} cells clash; they are marked.` : "";
    if (found.status === "impossible") status.bad("No solution", `${found.message} The grid shows the last step.${marked}`);
    else {
      status.bad("Not solved", `${counted(found.attempts, "attempt")} of ${found.limit} steps failed. ${found.message}${marked}`);
      const longer = h("button", { type: "button", onclick: thinkLonger }, "Think longer");
      status.element.append(h("p", {}, longer, " More steps, other noise", others.length ? ", the larger network." : "."));
    }
  }

  // Tries again with the larger network, the most steps and attempts, and other noise.
  function thinkLonger() {
    seed += 1;
    solve({ network: others[0]?.[0] ?? null, steps: Math.max(...STEPS), attempts: Math.max(...ATTEMPTS) });
  }

  async function solve(harder = {}) {
    reset();
    if (text.value.trim() && text.value !== readText && !(await read(text.value, refuse))) return;
    if (!givens.some(Boolean)) {
      status.plain("The grid is empty", "Type or paste a puzzle, or choose an example.");
      return;
    }
    solveButton.disabled = true;
    status.plain("Running …");
    bringIntoView();
    try {
      const asked = { puzzles: [asText(givens)], network: network.value || null, steps: Number(steps.value), attempts: Number(attempts.value), seed, ...harder };
      asked.steps = Math.min(asked.steps, MOST_STEPS[sizeOf(givens)] ?? Infinity);
      const both = compared.value === NONE ? [asked] : [asked, { ...asked, network: compared.value || null }];
      const results = await solving.run((signal) => Promise.all(both.map((body) => backend.solve(body, signal))));
      if (!results) return;
      const [first, other] = results.map((result) => ({ ...result.puzzles[0], limit: asked.steps }));
      show(first, other);
    } catch (error) {
      status.bad("Not solved", error.message);
    }
    solveButton.disabled = false;
  }

  function show(result, other = null) {
    if (result.status === "already solved") {
      status.good("Already solved", result.message);
      return;
    }
    found = result;
    second = other;
    if (second) {
      const [, title] = networks.find(([name]) => name === compared.value);
      beside = { grid: new Grid({ label: title }), status: verdict() };
      besideArea.replaceChildren(h("h2", {}, title), beside.grid.element, beside.status.element);
    }
    const given = givens.filter(Boolean).length;
    const values = [given, ...found.decided];
    const label = `Decided cells by step: ${given} before the first step, ${values.at(-1)} after step ${found.steps}.`;
    chart = lineChart(values, givens.length, label, "steps", (step) => {
      player.pause();
      player.go(step);
    });
    chartArea.replaceChildren(h("h2", {}, "Decided cells"), chart.element);
    status.plain("Running …", "The player shows the steps of the network.");
    player.load(stepsOf() + 1);
    bringIntoView();
  }

  // On a phone the button is below the grid.
  function bringIntoView() {
    const box = grid.element.getBoundingClientRect();
    if (box.top < 0 || box.bottom > innerHeight) grid.element.scrollIntoView({ block: "start" });
  }

  const shared = () => (givens.some(Boolean) ? { puzzle: asText(givens) } : {});

  return {
    shared,
    hide: () => player.pause(),
    load: async (input) => {
      const puzzle = input.get("puzzle");
      if (puzzle === null) {
        if (givens.some(Boolean)) return;
        setPuzzle(asDigits(examples[0].puzzle));
        solve();
        return;
      }
      if (puzzle === asText(givens) && found) return;
      await paste(puzzle);
    },
  };
}
