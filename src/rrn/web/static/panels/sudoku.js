// Sudoku: the probability of each digit in each cell, step by step, and the influence of groups on a cell.

import { sudoku as backend } from "../backend.js";
import { lineChart } from "../chart.js";
import { counted, freshId, h, labelled, percent } from "../dom.js";
import { CELLS, EMPTY, asDigits, asText, boxOf, clashes, columnOf, rowOf, symmetricVariant, whereIs } from "../grid.js";
import { Latest } from "../latest.js";
import { about, bar, verdict } from "../parts.js";
import { Player } from "../player.js";
import { shareButton, writeAddress } from "../share.js";

const DECIDED = 0.5;
const VISIBLE = 0.01;
const STEPS = 128;
const ATTEMPTS = 9;
const POINTING = 120; // milliseconds before the cell under the pointer is explained
const LEAST_INFLUENCE = 0.0005; // less is shown as none
const GROUPS = ["its own digits", "row", "column", "box"]; // in the order of the backend
const LARGEST = 0.4; // scale of a digit that fills a third of its cell
const SQUARES = [[0, 0, 3], [0, 0, 2], [1, 0, 2], [0, 1, 2], [1, 1, 2]]; // column, row and size, in thirds of a cell

class Grid {
  constructor({ onedit, onpaste, onenter, onpoint }) {
    this.onedit = onedit;
    this.onenter = onenter;
    this.at = 0;
    this.givens = EMPTY;
    const hint = freshId("hint");
    this.cells = Array.from({ length: CELLS }, (_, cell) => this.#makeCell(cell, onpoint));
    const rows = Array.from({ length: 9 }, (_, row) =>
      h("div", { role: "row", class: "row" }, this.cells.slice(9 * row, 9 * row + 9).map((cell) => cell.element)),
    );
    this.element = h(
      "div",
      {
        class: "grid",
        role: "grid",
        "aria-label": "Sudoku",
        "aria-describedby": hint,
        onkeydown: (event) => this.#key(event),
        onpointerleave: (event) => event.pointerType !== "touch" && onpoint(null),
      },
      rows,
    );
    this.element.addEventListener("paste", (event) => {
      event.preventDefault();
      onpaste(event.clipboardData.getData("text"));
    });
    this.hint = h("p", { class: "hint", id: hint }, "Keys: arrows move, digits type, Delete clears, Enter solves. You can paste a puzzle of 81 characters.");
  }

  #makeCell(cell, onpoint) {
    const digits = Array.from({ length: 9 }, (_, k) => h("span", { class: "digit", "aria-hidden": "true", hidden: true }, `${k + 1}`));
    const element = h(
      "div",
      {
        role: "gridcell",
        class: `cell r${rowOf(cell)} c${columnOf(cell)}`,
        tabindex: cell ? -1 : 0,
        onfocus: () => {
          this.#select(cell);
          onpoint(cell);
        },
        onclick: () => element.focus({ preventScroll: true }),
        onpointerenter: (event) => event.pointerType !== "touch" && onpoint(cell),
      },
      digits,
    );
    return { element, digits };
  }

  #select(cell) {
    this.cells[this.at].element.tabIndex = -1;
    this.at = cell;
    this.cells[cell].element.tabIndex = 0;
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = rowOf(this.at);
    const column = columnOf(this.at);
    const to = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      Home: [row, 0],
      End: [row, 8],
    }[event.key];
    if (to) this.cells[9 * ((to[0] + 9) % 9) + ((to[1] + 9) % 9)].element.focus();
    else if (/^[1-9]$/.test(event.key)) this.type(Number(event.key));
    else if (["Delete", "Backspace", "0", ".", " "].includes(event.key)) this.type(0);
    else if (event.key === "Enter") this.onenter();
    else return;
    event.preventDefault();
  }

  type(digit) {
    const digits = [...this.givens];
    digits[this.at] = digit;
    this.onedit(digits);
  }

  // probabilities: 81 × 9, or null for the givens alone. Returns the cells that clash.
  show(givens, probabilities) {
    this.givens = givens;
    const shown = givens.map((given, cell) => {
      if (given || !probabilities) return given;
      const most = Math.max(...probabilities[cell]);
      return most >= DECIDED ? probabilities[cell].indexOf(most) + 1 : 0;
    });
    const clashing = clashes(shown);
    this.cells.forEach(({ element, digits }, cell) => {
      const given = givens[cell];
      const chances = given || !probabilities ? digits.map((_, k) => Number(k + 1 === given)) : probabilities[cell];
      drawDigits(digits, chances);
      element.classList.toggle("given", given > 0);
      element.classList.toggle("decided", shown[cell] > 0);
      element.classList.toggle("clash", clashing.has(cell));
      element.setAttribute("aria-label", describe(cell, given, shown[cell], chances, clashing.has(cell)));
    });
    return clashing;
  }

  // Shades row, column and box of a cell by their influence on it, from 0 to 1; null removes the shades.
  shade(cell, influence) {
    this.cells.forEach(({ element }, other) => {
      const groups = !influence || other === cell ? [] : [
        rowOf(cell) === rowOf(other) && influence[1],
        columnOf(cell) === columnOf(other) && influence[2],
        boxOf(cell) === boxOf(other) && influence[3],
      ];
      const most = Math.max(0, ...groups.map(Number));
      element.classList.toggle("selected", Boolean(influence) && other === cell);
      element.classList.toggle("influential", most >= LEAST_INFLUENCE);
      element.style.setProperty("--influence", most.toFixed(4));
    });
  }
}

// The area of a digit is its probability, as far as its square allows. Every digit has a third of the cell's width and
// height; a decided digit takes the largest square without other digits.
function drawDigits(digits, chances) {
  const best = chances.indexOf(Math.max(...chances));
  const others = chances.map((_, k) => k).filter((k) => k !== best && chances[k] >= VISIBLE);
  const inside = (k, [x, y, size]) => k % 3 >= x && k % 3 < x + size && Math.floor(k / 3) >= y && Math.floor(k / 3) < y + size;
  const free = chances[best] >= DECIDED && SQUARES.find((square) => !others.some((k) => inside(k, square)));
  digits.forEach((digit, k) => {
    digit.dataset.probability = chances[k];
    digit.hidden = chances[k] < VISIBLE;
    if (digit.hidden) return;
    const [x, y, size] = (k === best && free) || [k % 3, Math.floor(k / 3), 1];
    const middle = (start) => ((100 * (start + size / 2)) / 3 - 50).toFixed(2);
    const scale = Math.min(Math.sqrt(chances[k]), LARGEST * size).toFixed(4);
    digit.style.transform = `translate(${middle(x)}cqw, ${middle(y)}cqh) scale(${scale})`;
  });
}

const certain = (answer) => [...answer].map((digit) => Array.from({ length: 9 }, (_, k) => Number(k + 1 === Number(digit))));

function describe(cell, given, digit, chances, clashing) {
  const clash = clashing ? ", clashes" : "";
  if (given) return `${whereIs(cell)}: ${given}, given${clash}`;
  const most = Math.max(...chances);
  if (!most) return `${whereIs(cell)}: empty`;
  return `${whereIs(cell)}: ${digit ? "" : "undecided, most probable "}${chances.indexOf(most) + 1}, ${percent(most)}${clash}`;
}

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
  let givens = EMPTY;
  let readText = ""; // the text that the givens were read from
  let found = null;
  let chart = null;
  let clashCount = 0;
  let pointed = null;
  let pointing = null;

  const grid = new Grid({ onedit: (digits) => setPuzzle(digits), onpaste: paste, onenter: solve, onpoint: point });
  const player = new Player(showStep, 0, (step) => (step > found.steps ? "Answer" : `Step ${step} of ${found.steps}`));
  const chartArea = h("div", { class: "chart-area" });
  const influence = h("div", { class: "influence", role: "status", "aria-live": "polite" });
  const text = h("textarea", { class: "cells", rows: 2, spellcheck: "false", autocomplete: "off", maxlength: 1000 });
  text.addEventListener("input", () => text.value.trim() && read(text.value, () => {}));
  const choice = h("select", {
    onchange: () => {
      if (!choice.value) return;
      setPuzzle(asDigits(choice.value), { keepChoice: true });
      solve();
    },
  });
  const solveButton = h("button", { type: "button", class: "primary", onclick: solve }, "Solve");
  const pad = h(
    "div",
    { class: "pad", role: "group", "aria-label": "Type into the selected cell" },
    Array.from({ length: 9 }, (_, k) => padButton(`${k + 1}`, `Type ${k + 1}`, k + 1)),
    padButton("⌫", "Clear the cell", 0),
  );

  section.append(
    about(info),
    h(
      "div",
      { class: "columns" },
      h("div", { class: "board" }, grid.element, player.element, legend()),
      h(
        "div",
        { class: "side" },
        h(
          "div",
          { class: "buttons" },
          solveButton,
          h("button", { type: "button", onclick: surprise }, "Surprise me"),
          h("button", { type: "button", onclick: () => setPuzzle(EMPTY) }, "Clear"),
          shareButton(),
        ),
        status.element,
        influence,
        labelled("Example", choice),
        labelled("Or type or paste a puzzle", text),
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

  // Removes the result, its player and its marks, and cancels requests.
  function reset() {
    solving.drop();
    reading.drop();
    found = null;
    chart = null;
    chartArea.replaceChildren();
    player.clear();
    explain();
    solveButton.disabled = false;
    status.clear();
    return grid.show(givens, null);
  }

  function setPuzzle(digits, { keepText = false, keepChoice = false } = {}) {
    givens = digits;
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
    setPuzzle(EMPTY, { keepText: true });
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
    const answered = step > found.steps;
    const shown = answered ? certain(found.answer) : step ? found.probabilities[step - 1] : null;
    clashCount = grid.show(givens, shown).size;
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
    const note = (sentence, shades = null) => {
      grid.shade(shades && cell, shades);
      influence.replaceChildren(...(sentence ? [h("p", {}, sentence)] : []));
    };
    asking.drop();
    if (cell === null || !step) return note("");
    if (givens[cell]) return note(`${whereIs(cell)} is given: no group influences it.`, [0, 0, 0, 0]);
    if (found.attempts > 1) return note("Influence is shown for puzzles that the first attempt solves.");
    try {
      const answer = await asking.run((signal) => backend.influence({ puzzle: asText(givens), step }, signal));
      if (!answer || pointed !== cell) return;
      const shares = answer.influence[cell];
      const order = shares.map((_, group) => group).sort((a, b) => shares[b] - shares[a]);
      const chances = found.probabilities[step - 1][cell];
      const most = Math.max(...chances);
      const now = h("strong", {}, `${whereIs(cell)}, step ${step}: ${chances.indexOf(most) + 1} at ${percent(most)}.`);
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

  function showResult() {
    if (found.solved) {
      const attempt = found.attempts > 1 ? ` of attempt ${found.attempts}` : "";
      const network = found.fallback ? " The larger network was used." : "";
      status.good("Solved", `In ${counted(found.steps, "step")}${attempt}.${network} Every row, column and box holds each digit once.`);
      return;
    }
    const marked = clashCount ? ` ${clashCount} cells clash; they are marked.` : "";
    if (found.status === "impossible") status.bad("No solution", `${found.message} The grid shows the last step.${marked}`);
    else status.bad("Not solved", `${counted(found.attempts, "attempt")} of ${STEPS} steps failed. ${found.message}${marked}`);
  }

  async function solve() {
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
      const asked = { puzzles: [asText(givens)], steps: STEPS, attempts: ATTEMPTS };
      const result = await solving.run((signal) => backend.solve(asked, signal));
      if (!result) return;
      show(result.puzzles[0]);
    } catch (error) {
      status.bad("Not solved", error.message);
    }
    solveButton.disabled = false;
  }

  function show(result) {
    if (result.status === "already solved") {
      status.good("Already solved", result.message);
      return;
    }
    found = result;
    const given = givens.filter(Boolean).length;
    const values = [given, ...found.decided];
    const label = `Decided cells by step: ${given} before the first step, ${values.at(-1)} after step ${found.steps}.`;
    chart = lineChart(values, CELLS, label, "steps", (step) => {
      player.pause();
      player.go(step);
    });
    chartArea.replaceChildren(h("h2", {}, "Decided cells"), chart.element);
    status.plain("Running …", "The player shows the steps of the network.");
    player.load(found.steps + 1);
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
