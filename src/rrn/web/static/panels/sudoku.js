// Sudoku: nine digits in each cell, sized by probability; and who a cell listens to.

import { sudoku as backend } from "../backend.js";
import { lineChart } from "../chart.js";
import { counted, freshId, h, labelled, percent } from "../dom.js";
import { CELLS, asText, boxOf, clashes, columnOf, disguise, readPuzzle, rowOf } from "../grid.js";
import { Latest } from "../latest.js";
import { about, bar, verdict } from "../parts.js";
import { Player } from "../player.js";
import { shareButton, writeAddress } from "../share.js";

const DECIDED = 0.5;
const VISIBLE = 0.01;
const STEPS = 128;
const RESTARTS = 8;
const REST = 120; // milliseconds that a pointer rests before a cell is asked about
const GROUPS = ["its own nine digits", "its row", "its column", "its box"]; // in the order of the backend

class Grid {
  constructor({ onedit, onpaste, onenter, onpoint }) {
    this.onedit = onedit;
    this.onenter = onenter;
    this.at = 0;
    this.givens = Array(CELLS).fill(0);
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
    this.hint = h("p", { class: "hint", id: hint }, "Arrows move, digits type, Delete clears, Enter solves. A puzzle of 81 characters can be pasted.");
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
          this.#stand(cell);
          onpoint(cell);
        },
        onclick: () => element.focus({ preventScroll: true }),
        onpointerenter: (event) => event.pointerType !== "touch" && onpoint(cell),
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

  // Shades the groups of a cell by how much it heard from them; null takes the shades away.
  shade(cell, heard) {
    const most = heard ? Math.max(...heard, 1e-6) : 1;
    this.cells.forEach(({ element }, other) => {
      const shares = !heard || other === cell ? [] : [
        rowOf(cell) === rowOf(other) && heard[1],
        columnOf(cell) === columnOf(other) && heard[2],
        boxOf(cell) === boxOf(other) && heard[3],
      ].filter((share) => share !== false);
      element.classList.toggle("asked", Boolean(heard) && other === cell);
      element.classList.toggle("heard", shares.length > 0);
      element.style.setProperty("--heard", shares.length ? (Math.max(...shares) / most).toFixed(3) : 0);
    });
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
const whereIs = (cell) => `Row ${rowOf(cell) + 1}, column ${columnOf(cell) + 1}`;

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
    h("li", {}, sample("", h("b", {}, "7"), h("small", {}, "2")), "size is probability"),
    h("li", {}, sample("given", "5"), "given"),
    h("li", {}, sample("clash", "4"), "red is a clash"),
    h("li", {}, sample("listening"), "point at a cell: who it listens to"),
  );
}

export async function create(info, section) {
  const examples = await backend.examples();
  const latest = new Latest();
  const asking = new Latest();
  const told = verdict();
  let givens = Array(CELLS).fill(0);
  let found = null;
  let chart = null;
  let clashCount = 0;
  let pointed = null;
  let resting = null;

  const grid = new Grid({ onedit: (digits) => setPuzzle(digits), onpaste: paste, onenter: solve, onpoint: point });
  const player = new Player(showStep, 0, (step) => (step > found.steps ? "Answer" : `Step ${step} of ${found.steps}`));
  const chartPlace = h("div", { class: "chart-place" });
  const listens = h("div", { class: "listens", role: "status", "aria-live": "polite" });
  const text = h("textarea", { class: "cells", rows: 2, spellcheck: "false", autocomplete: "off", maxlength: 1000 });
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
          h("button", { type: "button", onclick: () => setPuzzle(Array(CELLS).fill(0)) }, "Clear"),
          shareButton(),
        ),
        told.element,
        listens,
        labelled("Example", choice),
        labelled("Or type or paste a puzzle", text),
        pad,
        grid.hint,
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
    listen();
    solveButton.disabled = false;
    if (!keepText) text.value = digits.some(Boolean) ? asText(digits) : "";
    if (!keepChoice) choice.value = examples.some((example) => example.puzzle === asText(digits)) ? asText(digits) : "";
    writeAddress(info.task, shared());
    const wrong = grid.show(givens, null);
    if (wrong.size) told.bad("Clash", "Two equal digits share a row, a column or a box; they are marked.");
    else told.clear();
  }

  function paste(pasted) {
    try {
      setPuzzle(readPuzzle(pasted));
      solve();
    } catch (error) {
      told.bad("Not a puzzle", error.message);
    }
  }

  function surprise() {
    const solvable = examples.filter((example) => example.solvable);
    setPuzzle(disguise(readPuzzle(solvable[Math.floor(Math.random() * solvable.length)].puzzle)));
    solve();
  }

  function showStep(step) {
    const answered = step > found.steps;
    const shown = answered ? oneDigitEach(found.answer) : step ? found.probabilities[step - 1] : null;
    clashCount = grid.show(givens, shown).size;
    chart.mark(Math.min(step, found.steps));
    if (answered) sayHow();
    listen();
  }

  function point(cell) {
    clearTimeout(resting);
    pointed = cell;
    resting = setTimeout(listen, REST);
  }

  // Says who the cell pointed at listens to at the step shown.
  async function listen() {
    const cell = pointed;
    const step = found ? Math.min(player.step, found.steps) : 0;
    if (cell === null || !step) {
      asking.drop();
      grid.shade(null, null);
      listens.replaceChildren();
      return;
    }
    if (givens[cell]) {
      grid.shade(cell, [0, 0, 0, 0]);
      listens.replaceChildren(h("p", {}, `${whereIs(cell)} is given: it tells the others and listens to nobody.`));
      return;
    }
    if (found.starts > 1) {
      grid.shade(null, null);
      listens.replaceChildren(h("p", {}, "Who listened to whom is shown for puzzles that the first start solves."));
      return;
    }
    try {
      const answer = await asking.run((signal) => backend.heard({ puzzle: asText(givens), step }, signal));
      if (!answer || pointed !== cell) return;
      const heard = answer.heard[cell];
      const order = heard.map((_, group) => group).sort((a, b) => heard[b] - heard[a]);
      const chances = found.probabilities[step - 1][cell];
      const most = Math.max(...chances);
      grid.shade(cell, heard);
      listens.replaceChildren(
        h("p", {}, h("strong", {}, `${whereIs(cell)}, step ${step}: ${chances.indexOf(most) + 1} at ${percent(most)}.`), " How far that belief would be another without what it just heard from"),
        h("ul", {}, order.map((group) => h("li", {}, h("span", {}, GROUPS[group]), bar(heard[group]), percent(heard[group])))),
      );
    } catch (error) {
      listens.replaceChildren(h("p", {}, error.message));
    }
  }

  function sayHow() {
    const failed = found.starts === 2 ? "the first" : `the ${found.starts - 1} before it`;
    const start = found.starts > 1 ? ` of start ${found.starts}; ${failed} failed` : "";
    if (found.solved) {
      const guessed = found.handed_over ? " A wider network, which guesses, was asked." : "";
      told.good("Solved", `In ${counted(found.steps, "step")}${start}.${guessed} Every row, column and box holds each digit once.`);
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
    latest.drop();
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
    bringIntoView();
    try {
      const asked = { puzzles: [asText(givens)], steps: STEPS, restarts: RESTARTS };
      const result = await latest.run((signal) => backend.solve(asked, signal));
      if (!result) return;
      show(result.puzzles[0]);
    } catch (error) {
      told.bad("Not solved", error.message);
    }
    solveButton.disabled = false;
  }

  function show(outcome) {
    if (outcome.status === "already solved") {
      told.good("Already solved", outcome.reason);
      return;
    }
    found = outcome;
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
        setPuzzle(readPuzzle(examples[0].puzzle));
        solve();
        return;
      }
      if (puzzle === asText(givens) && found) return;
      paste(puzzle);
    },
  };
}
