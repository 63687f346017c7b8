// Reads the digits in the cells of a grid with a small convolutional network: see tasks/photo in the Python package.

import { countSolutions } from "../exact.js";
import { CELLS, boxOf, columnOf, rowOf } from "../grid.js";
import { inkOf, quantile, map } from "./pixels.js";

const SIZE = 28;
const EDGE = 0.07; // the share of a cell left out at each edge: its lines
const FARTHEST = 14;
const MOST_READINGS = 3000;
const MOST_SEARCHES = 200;

// The cells of a grid: 81 Float32Arrays of 28 × 28, 0 is paper, 1 is the darkest ink.
export function cutCells(gray, grid) {
  const fine = 2 * SIZE;
  const along = Array.from({ length: 9 * fine }, (_, k) => (Math.floor(k / fine) + EDGE + (((k % fine) + 0.5) / fine) * (1 - 2 * EDGE)) / 9);
  const source = grid.inverted ? map(gray, (value) => 255 - value) : gray;
  const doubled = grid.sample(source, along);
  const wide = 9 * SIZE;
  const flat = { wide, high: wide, data: new Float32Array(wide * wide) };
  flat.data.forEach((_, i) => {
    const corner = 2 * Math.floor(i / wide) * doubled.wide + 2 * (i % wide);
    flat.data[i] = (doubled.data[corner] + doubled.data[corner + 1] + doubled.data[corner + doubled.wide] + doubled.data[corner + doubled.wide + 1]) / 4;
  });
  const ink = inkOf(flat, 7, SIZE / 4);
  const cells = Array.from({ length: 81 }, (_, cell) => {
    const corner = Math.floor(cell / 9) * SIZE * wide + (cell % 9) * SIZE;
    return Float32Array.from({ length: SIZE * SIZE }, (_, i) => ink.data[corner + Math.floor(i / SIZE) * wide + (i % SIZE)]);
  });
  const middle = (cell) => cell.filter((_, i) => i % SIZE >= 4 && i % SIZE < 24 && i >= 4 * SIZE && i < 24 * SIZE);
  const level = Math.max(quantile(cells.map((cell) => quantile(middle(cell), 0.98)), 0.85), 0.12);
  return cells.map((cell) => cell.map((value) => Math.min(value / level, 1)));
}

// A convolution with padding, a ReLU and a 2 × 2 maximum. planes: (channels, side, side).
function layer(planes, side, { weight, bias, channels, kernel }) {
  const filters = bias.length;
  const reach = (kernel - 1) / 2;
  const half = Math.floor(side / 2);
  const pooled = new Float32Array(filters * half * half);
  const sums = new Float32Array(side * side);
  for (let filter = 0; filter < filters; filter++) {
    sums.fill(bias[filter]);
    for (let channel = 0; channel < channels; channel++) {
      for (let dy = -reach; dy <= reach; dy++) {
        for (let dx = -reach; dx <= reach; dx++) {
          const w = weight[((filter * channels + channel) * kernel + dy + reach) * kernel + dx + reach];
          for (let y = Math.max(0, -dy); y < Math.min(side, side - dy); y++) {
            const from = (channel * side + y + dy) * side + dx;
            for (let x = Math.max(0, -dx); x < Math.min(side, side - dx); x++) sums[y * side + x] += w * planes[from + x];
          }
        }
      }
    }
    for (let y = 0; y < half; y++) {
      for (let x = 0; x < half; x++) {
        const i = 2 * y * side + 2 * x;
        pooled[(filter * half + y) * half + x] = Math.max(0, sums[i], sums[i + 1], sums[i + side], sums[i + side + 1]);
      }
    }
  }
  return pooled;
}

// The network from the numbers of reader.bin: weights and biases of three convolutions and a linear layer.
export function makeReader(numbers) {
  const filters = numbers[0];
  let used = 1;
  const take = (count) => numbers.subarray(used, (used += count));
  const convolution = (channels, count, kernel) => ({ weight: take(count * channels * kernel ** 2), bias: take(count), channels, kernel });
  const layers = [convolution(1, filters, 5), convolution(filters, 2 * filters, 3), convolution(2 * filters, 2 * filters, 3)];
  const inputs = 18 * filters;
  const [weight, bias] = [take(10 * inputs), take(10)];
  return (cell) => {
    let [planes, side] = [cell, SIZE];
    for (const part of layers) [planes, side] = [layer(planes, side, part), Math.floor(side / 2)];
    const logits = Array.from(bias, (value, k) => planes.reduce((sum, plane, i) => sum + plane * weight[k * inputs + i], value));
    const most = Math.max(...logits);
    const powers = logits.map((logit) => Math.exp(logit - most));
    const sum = powers.reduce((a, b) => a + b);
    return powers.map((power) => power / sum);
  };
}

// Two cells that share a row, a column or a box and a digit.
function clashingPair(digits) {
  for (let a = 0; a < CELLS; a++) {
    for (let b = a + 1; b < CELLS; b++) {
      if (digits[a] && digits[a] === digits[b] && [rowOf, columnOf, boxOf].some((group) => group(a) === group(b))) return [a, b];
    }
  }
  return null;
}

// The likeliest digits that make up a puzzle with exactly one solution; else with one; else the likeliest. Where two
// digits clash, one of them is read differently; where a reading has no solution, or several, a doubtful digit is.
export function likeliestPuzzle(probabilities) {
  const costs = probabilities.map((row) => row.map((p) => -Math.log(Math.max(p, 1e-12))));
  const order = costs.map((row) => row.map((_, k) => k).sort((a, b) => row[a] - row[b]));
  const extra = (cell, rank) => costs[cell][order[cell][rank]] - costs[cell][order[cell][0]];
  const doubtful = order.map((_, cell) => cell).filter((cell) => extra(cell, 1) < FARTHEST);
  const waiting = [{ cost: 0, ranks: {} }];
  const seen = new Set(["{}"]);
  let [solvable, searches] = [null, 0];
  for (let number = 0; number < MOST_READINGS && waiting.length && searches < MOST_SEARCHES; number++) {
    const next = waiting.reduce((best, item, k) => (item.cost < waiting[best].cost ? k : best), 0);
    const [{ ranks }] = waiting.splice(next, 1);
    const digits = order.map((row, cell) => row[ranks[cell] ?? 0]);
    let cells = clashingPair(digits);
    if (!cells) {
      searches++;
      const solutions = countSolutions(digits);
      if (solutions === 1) return digits;
      if (solutions) solvable ??= digits;
      cells = doubtful;
    }
    for (const cell of cells) {
      for (let rank = (ranks[cell] ?? 0) + 1; rank < 10; rank++) {
        const changed = { ...ranks, [cell]: rank };
        const cost = Object.entries(changed).reduce((sum, [place, at]) => sum + extra(place, at), 0);
        const key = JSON.stringify(changed); // numeric keys are in ascending order
        if (cost >= FARTHEST || seen.has(key)) continue;
        seen.add(key);
        waiting.push({ cost, ranks: changed });
      }
    }
  }
  return solvable ?? order.map((row) => row[0]);
}
