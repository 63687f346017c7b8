// Sudoku: steps of the network until the grid is filled and breaks no rule.

import { CELLS, asText, clashes, columnOf, readPuzzle, rowOf, seeEachOther, solves } from "../grid.js";
import { countSolutions } from "./exact.js";
import { best, floats, integers, run, softmax, widthOf, zeros } from "./network.js";

const CANDIDATES = 729;
const KINDS = 6;
const DECIDED = 0.5;
const NOISE = 0.3;
const NOISE_EVERY = 8;
const SILENT = [[], [0], [1, 4], [2, 5], [3]]; // kinds of groups that each of five copies does not hear
const REASONS = {
  0: "The puzzle has no solution, as an exact search shows.",
  1: "The puzzle has a solution, which the network did not find.",
  2: "The puzzle has several solutions; any of them would have been accepted.",
  "-1": "Whether the puzzle has a solution would take a longer search.",
};

let last = { puzzle: "", states: [] }; // of the first start of the puzzle solved last

async function step(givens, state, listening = [Array(KINDS).fill(1)]) {
  const copies = listening.length;
  const repeat = (part) => (copies === 1 ? part : floats(Array.from({ length: copies }, () => Array.from(part.data)).flat(), [copies, CANDIDATES, part.dims[2]]));
  const outputs = await run("sudoku", {
    puzzle: integers(Array(copies).fill(givens).flat(), [copies, CELLS]),
    listening: floats(listening.flat(), [copies, KINDS]),
    state_0: repeat(state[0]),
    state_1: repeat(state[1]),
  });
  const cell = (copy, k) => softmax(outputs.outputs.data.slice((copy * CELLS + k) * 9, (copy * CELLS + k + 1) * 9));
  const chances = Array.from({ length: copies }, (_, copy) => Array.from({ length: CELLS }, (_, k) => cell(copy, k)));
  return { chances, state: [outputs.next_state_0, outputs.next_state_1] };
}

async function start() {
  const widths = await Promise.all(["state_0", "state_1"].map((input) => widthOf("sudoku", input)));
  return widths.map((width) => zeros([1, CANDIDATES, width]));
}

const gauss = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());

// One start: the probabilities after each step, up to the one that solves it.
async function oneStart(givens, steps, noisy, signal, states = []) {
  const chances = [];
  let state = await start();
  for (let t = 0; t < steps; t++) {
    if (signal?.aborted) throw new DOMException("dropped", "AbortError");
    if (noisy && t % NOISE_EVERY === 0 && 2 * t < steps) {
      state = [state[0], floats(state[1].data.map((value) => value + NOISE * gauss()), state[1].dims)];
    }
    states.push(state);
    const after = await step(givens, state);
    state = after.state;
    chances.push(after.chances[0]);
    if (solves(after.chances[0].map((row) => best(row) + 1), givens)) return { chances, solved: true };
  }
  return { chances, solved: false };
}

function outcome(givens, { chances, solved }, starts, status, reason) {
  const shown = chances.at(-1);
  const answer = shown.map((row) => best(row) + 1);
  const empty = givens.map((given, cell) => (given ? 0 : Math.max(...shown[cell])));
  return {
    puzzle: asText(givens),
    solved,
    status,
    reason,
    answer: asText(answer),
    steps: chances.length,
    starts,
    handed_over: false,
    confidence: empty.reduce((a, b) => a + b) / Math.max(givens.filter((given) => !given).length, 1),
    grids: chances.map((cells) => asText(cells.map((row) => best(row) + 1))),
    decided: chances.map((cells) => cells.filter((row, cell) => givens[cell] || Math.max(...row) >= DECIDED).length),
    probabilities: chances,
  };
}

function check(givens) {
  for (let a = 0; a < CELLS; a++) {
    for (let b = a + 1; b < CELLS; b++) {
      if (!givens[a] || givens[a] !== givens[b] || !seeEachOther(a, b)) continue;
      const [one, other] = [a, b].map((cell) => `row ${rowOf(cell) + 1}, column ${columnOf(cell) + 1}`);
      throw new Error(`The puzzle contradicts itself: ${givens[a]} in ${one} and in ${other}.`);
    }
  }
}

async function solveOne(text, { steps = 128, restarts = 0 }, signal) {
  const givens = readPuzzle(text);
  check(givens);
  if (givens.every(Boolean) && !clashes(givens).size) {
    const full = { chances: [givens.map((given) => Array.from({ length: 9 }, (_, k) => Number(k + 1 === given)))], solved: true };
    return { ...outcome(givens, full, 0, "already solved", "The grid is full and breaks no rule."), steps: 0 };
  }
  const states = [];
  const first = await oneStart(givens, steps, false, signal, states);
  last = { puzzle: asText(givens), states };
  if (first.solved) return outcome(givens, first, 1, "solved", null);
  const solutions = countSolutions(givens);
  if (!solutions) return outcome(givens, first, 1, "no solution", REASONS[0]);
  for (let number = 2; number <= restarts + 1; number++) {
    const again = await oneStart(givens, steps, true, signal);
    if (again.solved) return outcome(givens, again, number, "solved", null);
  }
  return outcome(givens, first, restarts + 1, "not solved", REASONS[solutions]);
}

export async function solve(asked, signal) {
  const puzzles = [];
  for (const text of asked.puzzles) puzzles.push(await solveOne(text, asked, signal));
  return { puzzles };
}

// What each cell owes to its own digits, its row, its column and its box: the change of its belief without them.
export async function heard({ puzzle, step: number }, signal) {
  const givens = readPuzzle(puzzle);
  check(givens);
  if (last.puzzle !== asText(givens) || !last.states[number - 1]) {
    const states = [];
    await oneStart(givens, number, false, signal, states);
    last = { puzzle: asText(givens), states };
  }
  const state = last.states[number - 1];
  if (!state) throw new Error(`The puzzle is solved before step ${number}.`);
  const listening = SILENT.map((kinds) => Array.from({ length: KINDS }, (_, kind) => Number(!kinds.includes(kind))));
  const { chances } = await step(givens, state, listening);
  const change = (cell, copy) => 0.5 * chances[0][cell].reduce((sum, p, k) => sum + Math.abs(p - chances[copy][cell][k]), 0);
  return { groups: ["cell", "row", "column", "box"], heard: givens.map((_, cell) => [1, 2, 3, 4].map((copy) => change(cell, copy))) };
}
