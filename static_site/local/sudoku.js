// Sudoku: reads puzzles and runs the network step by step until the grid is a solution.

import { CELLS, asDigits, asText, clashes, whereIs } from "../grid.js";
import { countSolutions } from "../exact.js";
import { best, floats, integers, run, softmax, widthOf, zeros } from "./network.js";

const CANDIDATES = 729;
const GROUP_TYPES = 6;
const DECIDED = 0.5;
const NOISE = 0.3;
const NOISE_EVERY = 8;
const MASKED = [[], [0], [1, 4], [2, 5], [3]]; // group types whose messages each of five copies does not receive
const MESSAGES = {
  0: "The puzzle has no solution, proved by exact search.",
  1: "The puzzle has one solution, which the network did not find.",
  2: "The puzzle has several solutions, and the network found none of them.",
  "-1": "The puzzle may have no solution: the exact search reached its limit.",
};
const STATUS = { 0: "impossible", 1: "unsolved", 2: "ambiguous", "-1": "unsolved" };

const BETWEEN_CELLS = /[\s|+=│─┼┌┬┐├┤└┴┘║═╬┃━╋]/gu;
const EMPTY_CELL = /[0._*?xX·•∙⋅．＊？０-]/u;
const RULE = /^[\s*+|-]*-{3,}[\s*+|-]*$/;

let last = { puzzle: "", states: [] }; // states of the first attempt at the latest puzzle

// A dash is an empty cell or part of a line between cells: the reading with 81 cells is taken.
function parse(text) {
  const lines = text.normalize("NFKC").split("\n");
  const without = lines.filter((line) => !RULE.test(line)).join("");
  const readings = [without.replaceAll("-", ""), lines.join(""), without].map((reading) => [...reading.replace(BETWEEN_CELLS, "")]);
  const cells = readings.find((reading) => reading.length === CELLS) ?? readings[0];
  const wrong = cells.find((cell) => !/[1-9]/.test(cell) && !EMPTY_CELL.test(cell));
  if (wrong) throw new Error(`The puzzle: '${wrong}' is neither a digit nor an empty cell (0, . or _).`);
  if (cells.length !== CELLS) throw new Error(`The puzzle: ${cells.length} cells where a puzzle has 81.`);
  return asDigits(cells);
}

export async function read({ text }) {
  try {
    return { puzzle: asText(parse(text)), message: "" };
  } catch (error) {
    return { puzzle: null, message: error.message };
  }
}

function parseWithoutClashes(text) {
  const givens = parse(text);
  const [first] = clashes(givens);
  if (first === undefined) return givens;
  const other = [...clashes(givens)].find((cell) => cell > first && givens[cell] === givens[first]);
  const [one, two] = [first, other].map((cell) => whereIs(cell).toLowerCase());
  throw new Error(`The puzzle contradicts itself: ${givens[first]} in ${one} and in ${two}.`);
}

const solves = (digits, givens) => givens.every((given, cell) => !given || given === digits[cell]) && !clashes(digits).size;

// One step of several copies of a puzzle, each with a mask of the group types whose messages it receives.
async function step(givens, state, masks = [Array(GROUP_TYPES).fill(1)]) {
  const copies = masks.length;
  const repeat = (part) => (copies === 1 ? part : floats(Array.from({ length: copies }, () => Array.from(part.data)).flat(), [copies, CANDIDATES, part.dims[2]]));
  const outputs = await run("sudoku", {
    puzzle: integers(Array(copies).fill(givens).flat(), [copies, CELLS]),
    group_mask: floats(masks.flat(), [copies, GROUP_TYPES]),
    state_0: repeat(state[0]),
    state_1: repeat(state[1]),
  });
  const cell = (copy, k) => softmax(outputs.outputs.data.slice((copy * CELLS + k) * 9, (copy * CELLS + k + 1) * 9));
  const probabilities = Array.from({ length: copies }, (_, copy) => Array.from({ length: CELLS }, (_, k) => cell(copy, k)));
  return { probabilities, state: [outputs.next_state_0, outputs.next_state_1] };
}

async function initialState() {
  const widths = await Promise.all(["state_0", "state_1"].map((input) => widthOf("sudoku", input)));
  return widths.map((width) => zeros([1, CANDIDATES, width]));
}

const gauss = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());

// The probabilities after each step of one attempt, which ends when the puzzle is solved.
async function attempt(givens, steps, noisy, signal, states = []) {
  const record = [];
  let state = await initialState();
  for (let t = 0; t < steps; t++) {
    if (signal?.aborted) throw new DOMException("aborted", "AbortError");
    if (noisy && t % NOISE_EVERY === 0 && 2 * t < steps) {
      state = [state[0], floats(state[1].data.map((value) => value + NOISE * gauss()), state[1].dims)];
    }
    states.push(state);
    const after = await step(givens, state);
    state = after.state;
    record.push(after.probabilities[0]);
    if (solves(after.probabilities[0].map((row) => best(row) + 1), givens)) return { record, solved: true };
  }
  return { record, solved: false };
}

function result(givens, { record, solved }, attempts, status, message) {
  const empty = givens.map((given, cell) => (given ? 0 : Math.max(...record.at(-1)[cell])));
  const grids = record.map((cells) => asText(cells.map((row) => best(row) + 1)));
  return {
    puzzle: asText(givens),
    solved,
    status,
    message,
    answer: grids.at(-1),
    steps: record.length,
    attempts,
    fallback: false,
    confidence: empty.reduce((a, b) => a + b) / Math.max(givens.filter((given) => !given).length, 1),
    grids,
    decided: record.map((cells) => cells.filter((row, cell) => givens[cell] || Math.max(...row) >= DECIDED).length),
    probabilities: record,
  };
}

async function solveOne(text, { steps = 128, attempts = 1 }, signal) {
  const givens = parseWithoutClashes(text);
  if (givens.every(Boolean)) {
    const full = { record: [givens.map((given) => Array.from({ length: 9 }, (_, k) => Number(k + 1 === given)))], solved: true };
    return { ...result(givens, full, 0, "already solved", "The grid is full and breaks no rule."), steps: 0 };
  }
  const states = [];
  const first = await attempt(givens, steps, false, signal, states);
  last = { puzzle: asText(givens), states };
  if (first.solved) return result(givens, first, 1, "solved", "");
  const solutions = countSolutions(givens);
  const most = solutions ? attempts : 1;
  for (let number = 2; number <= most; number++) {
    const next = await attempt(givens, steps, true, signal);
    if (next.solved) return result(givens, next, number, "solved", "");
  }
  return result(givens, first, most, STATUS[solutions], MESSAGES[solutions]);
}

export async function solve(request, signal) {
  const puzzles = [];
  for (const text of request.puzzles) puzzles.push(await solveOne(text, request, signal));
  return { puzzles };
}

// The change of each cell's probabilities without the messages of its own digits, its row, its column and its box.
export async function influence({ puzzle, step: number }, signal) {
  const givens = parseWithoutClashes(puzzle);
  if (last.puzzle !== asText(givens) || !last.states[number - 1]) {
    const states = [];
    await attempt(givens, number, false, signal, states);
    last = { puzzle: asText(givens), states };
  }
  const state = last.states[number - 1];
  if (!state) throw new Error(`The puzzle is solved before step ${number}.`);
  const masks = MASKED.map((types) => Array.from({ length: GROUP_TYPES }, (_, type) => Number(!types.includes(type))));
  const { probabilities } = await step(givens, state, masks);
  const change = (cell, copy) => 0.5 * probabilities[0][cell].reduce((sum, p, k) => sum + Math.abs(p - probabilities[copy][cell][k]), 0);
  return { groups: ["cell", "row", "column", "box"], influence: givens.map((_, cell) => [1, 2, 3, 4].map((copy) => change(cell, copy))) };
}
