// Sudoku: nine digits in each cell, sized by probability.

import { Latest, get, post } from "../api.js";
import { lineChart } from "../chart.js";
import { freshId, h, labelled, percent } from "../dom.js";
import { verdict } from "../parts.js";
import { Player } from "../player.js";
import { shareButton, writeAddress } from "../share.js";

const CELLS = 81;
const DECIDED = 0.5;
const VISIBLE = 0.01;
const STEPS = 128;
const RESTARTS = 8;

const rowOf = (cell) => Math.floor(cell / 9);
const columnOf = (cell) => cell % 9;
const boxOf = (cell) => 3 * Math.floor(rowOf(cell) / 3) + Math.floor(columnOf(cell) / 3);
const seeEachOther = (a, b) =>
  a !== b && (rowOf(a) === rowOf(b) || columnOf(a) === columnOf(b) || boxOf(a) === boxOf(b));

// The cells that share a row, a column or a box with the same digit. 0 is empty.
export function clashes(digits) {
  const found = new Set();
  for (let a = 0; a < CELLS; a++) {
    for (let b = a + 1; b < CELLS; b++) {
      if (digits[a] && digits[a] === digits[b] && seeEachOther(a, b)) found.add(a).add(b);
    }
  }
  return found;
}

const asText = (digits) => digits.map((digit) => digit || ".").join("");

function readPuzzle(text) {
  const cells = [...text.replace(/[\s|+=-]/g, "")];
  const wrong = cells.find((cell) => !/[0-9._]/.test(cell));
  if (wrong) throw new Error(`“${wrong}” is neither a digit nor an empty cell (0, . or _).`);
  if (cells.length !== CELLS) throw new Error(`These are ${cells.length} cells, but a puzzle has 81.`);
  return cells.map((cell) => Number(cell) || 0);
}

class Grid {
  constructor(onedit, onpaste, onenter) {
    this.onedit = onedit;
    this.onenter = onenter;
    this.at = 0;
    this.givens = Array(CELLS).fill(0);
    const hint = freshId("hint");
    this.cells = Array.from({ length: CELLS }, (_, cell) => this.#makeCell(cell));
    const rows = Array.from({ length: 9 }, (_, row) =>
      h("div", { role: "row", class: "row" }, this.cells.slice(9 * row, 9 * row + 9).map((cell) => cell.element)),
    );
    this.element = h(
      "div",
      { class: "grid", role: "grid", "aria-label": "Sudoku", "aria-describedby": hint, onkeydown: (event) => this.#key(event) },
      rows,
    );
    this.element.addEventListener("paste", (event) => {
      event.preventDefault();
      onpaste(event.clipboardData.getData("text"));
    });
    this.hint = h("p", { class: "hint", id: hint }, "Arrows move, digits type, Delete clears, Enter solves. A puzzle of 81 characters can be pasted.");
  }

  #makeCell(cell) {
    const digits = Array.from({ length: 9 }, (_, k) => h("span", { class: "digit", "aria-hidden": "true", hidden: true }, `${k + 1}`));
    const element = h(
      "div",
      {
        role: "gridcell",
        class: `cell r${rowOf(cell)} c${columnOf(cell)}`,
        tabindex: cell ? -1 : 0,
        onfocus: () => this.#stand(cell),
        onclick: () => element.focus(),
      },
      digits,
    );
    return { element, digits };
  }

  #stand(cell) {
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

  // probabilities: 81 × 9, or null to show the givens alone.
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
      digits.forEach((digit, k) => place(digit, k, chances[k]));
      element.classList.toggle("given", given > 0);
      element.classList.toggle("decided", shown[cell] > 0);
      element.classList.toggle("clash", clashing.has(cell));
      element.setAttribute("aria-label", describe(cell, given, shown[cell], chances, clashing.has(cell)));
    });
    return clashing;
  }
}

// The area of a digit is its probability. From 50 % on it moves to the middle of its cell.
function place(digit, k, p) {
  digit.dataset.probability = p;
  digit.hidden = p < VISIBLE;
  if (digit.hidden) return;
  const apart = Math.min(1, 2 - 2 * p);
  const reach = apart * (33 - 7 * Math.sqrt(p));
  const x = ((k % 3) - 1) * reach;
  const y = (Math.floor(k / 3) - 1) * reach;
  digit.style.transform = `translate(${x.toFixed(2)}cqw, ${y.toFixed(2)}cqh) scale(${Math.sqrt(p).toFixed(4)})`;
}

const oneDigitEach = (answer) => [...answer].map((digit) => Array.from({ length: 9 }, (_, k) => Number(k + 1 === Number(digit))));

function describe(cell, given, digit, chances, clashing) {
  const where = `Row ${rowOf(cell) + 1}, column ${columnOf(cell) + 1}: `;
  const clash = clashing ? ", clashes" : "";
  if (given) return `${where}${given}, given${clash}`;
  const most = Math.max(...chances);
  if (!most) return `${where}empty`;
  return `${where}${digit ? "" : "undecided, most probable "}${chances.indexOf(most) + 1}, ${percent(most)}${clash}`;
}

export async function create(info, section) {
  const examples = await get("api/sudoku/examples");
  const latest = new Latest();
  const told = verdict();
  let givens = Array(CELLS).fill(0);
  let found = null;
  let chart = null;
  let clashCount = 0;

  const grid = new Grid(edit, paste, solve);
  const player = new Player(showStep, 0, (step) => (step > found.steps ? "Answer" : `Step ${step} of ${found.steps}`));
  const chartPlace = h("div", { class: "chart-place" });
  const text = h("textarea", { class: "cells", rows: 3, spellcheck: "false", autocomplete: "off", maxlength: 1000 });
  text.addEventListener("input", () => {
    if (!text.value.trim()) return;
    try {
      setPuzzle(readPuzzle(text.value), { keepText: true });
    } catch {
      // Half-typed; the Solve button says what is wrong.
    }
  });
  const choice = h("select", {
    onchange: () => {
      if (!choice.value) return;
      setPuzzle(readPuzzle(choice.value), { keepChoice: true });
      solve();
    },
  });
  const solveButton = h("button", { type: "button", class: "primary", onclick: solve }, "Solve");
  const pad = h(
    "div",
    { class: "pad", role: "group", "aria-label": "Type into the chosen cell" },
    Array.from({ length: 9 }, (_, k) => padButton(`${k + 1}`, `Type ${k + 1}`, k + 1)),
    padButton("⌫", "Clear the cell", 0),
  );

  section.append(
    h("p", { class: "about" }, info.about, " ", h("span", { class: "size" }, `${info.parameters.toLocaleString("en")} parameters.`)),
    h(
      "div",
      { class: "columns" },
      h("div", { class: "board" }, grid.element, player.element, pad, grid.hint),
      h(
        "div",
        { class: "side" },
        labelled("Example", choice),
        labelled("Or type or paste a puzzle", text),
        h(
          "div",
          { class: "buttons" },
          solveButton,
          h("button", { type: "button", onclick: () => setPuzzle(Array(CELLS).fill(0)) }, "Clear"),
          shareButton(),
        ),
        told.element,
        chartPlace,
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

  function setPuzzle(digits, { keepText = false, keepChoice = false } = {}) {
    latest.drop();
    givens = digits;
    found = null;
    chart = null;
    chartPlace.replaceChildren();
    player.clear();
    solveButton.disabled = false;
    if (!keepText) text.value = digits.some(Boolean) ? asText(digits) : "";
    if (!keepChoice) choice.value = examples.some((example) => example.puzzle === asText(digits)) ? asText(digits) : "";
    writeAddress(info.task, shared());
    const wrong = grid.show(givens, null);
    if (wrong.size) told.bad("Clash", "Two equal digits share a row, a column or a box; they are marked.");
    else told.clear();
  }

  function edit(digits) {
    setPuzzle(digits);
  }

  function paste(pasted) {
    try {
      setPuzzle(readPuzzle(pasted));
      solve();
    } catch (error) {
      told.bad("Not a puzzle", error.message);
    }
  }

  function showStep(step) {
    const answered = step > found.steps;
    const shown = answered ? oneDigitEach(found.answer) : step ? found.probabilities[step - 1] : null;
    clashCount = grid.show(givens, shown).size;
    chart.mark(Math.min(step, found.steps));
    if (answered) sayHow();
  }

  function sayHow() {
    const failed = found.starts === 2 ? "the first" : `the ${found.starts - 1} before it`;
    const start = found.starts > 1 ? ` of start ${found.starts}; ${failed} failed` : "";
    if (found.solved) {
      told.good("Solved", `In ${found.steps} step${found.steps === 1 ? "" : "s"}${start}. Every row, column and box holds each digit once.`);
      return;
    }
    const marked = clashCount ? ` ${clashCount} cells clash; they are marked.` : "";
    if (found.status === "no solution") {
      told.bad("No solution", `${found.reason} This is how far the network came.${marked}`);
      return;
    }
    const tried = found.starts > 1 ? `${found.starts} starts of ${STEPS} steps` : `${STEPS} steps`;
    told.bad("Not solved", `After ${tried} the grid still breaks a rule. ${found.reason}${marked}`);
  }

  async function solve() {
    try {
      if (text.value.trim()) {
        const digits = readPuzzle(text.value);
        if (asText(digits) !== asText(givens)) setPuzzle(digits);
      }
    } catch (error) {
      told.bad("Not a puzzle", error.message);
      return;
    }
    if (!givens.some(Boolean)) {
      told.plain("The grid is empty", "Type or paste a puzzle, or choose an example.");
      return;
    }
    player.clear();
    solveButton.disabled = true;
    told.plain("Thinking …");
    try {
      const asked = { puzzles: [asText(givens)], steps: STEPS, restarts: RESTARTS };
      const result = await latest.run((signal) => post("api/sudoku/solve", asked, signal));
      if (!result) return;
      found = result.puzzles[0];
      if (found.status === "already solved") {
        told.good("Already solved", found.reason);
        solveButton.disabled = false;
        return;
      }
      const given = givens.filter(Boolean).length;
      const values = [given, ...found.decided];
      const label = `Cells decided against steps: ${given} before the first step, ${values.at(-1)} after step ${found.steps}.`;
      chart = lineChart(values, CELLS, label, "steps", (step) => {
        player.pause();
        player.go(step);
      });
      chartPlace.replaceChildren(h("h2", {}, "Cells decided"), chart.element);
      told.plain("Thinking …", "The network's steps are being shown.");
      player.load(found.steps + 1);
    } catch (error) {
      told.bad("Not solved", error.message);
    }
    solveButton.disabled = false;
  }

  const shared = () => (givens.some(Boolean) ? { puzzle: asText(givens) } : {});

  return {
    shared,
    hide: () => player.pause(),
    load: async (input) => {
      const puzzle = input.get("puzzle");
      if (puzzle === null) {
        if (givens.some(Boolean)) return;
        setPuzzle(readPuzzle(examples[0].puzzle));
        choice.value = examples[0].puzzle;
        return;
      }
      if (puzzle === asText(givens) && found) return;
      paste(puzzle);
    },
  };
}
