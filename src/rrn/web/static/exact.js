// An exact search: whether a puzzle that the network did not solve has a solution.

import { boxOf, columnOf, rowOf } from "./grid.js";

// The number of solutions, counted up to 2; -1 if the search needs more guesses than allowed.
export function countSolutions(givens, mostGuesses = 20_000) {
  const rows = Array(9).fill(0);
  const columns = Array(9).fill(0);
  const boxes = Array(9).fill(0);
  const empty = [];
  const toggle = (cell, bit) => {
    rows[rowOf(cell)] ^= bit;
    columns[columnOf(cell)] ^= bit;
    boxes[boxOf(cell)] ^= bit;
  };
  givens.forEach((digit, cell) => (digit ? toggle(cell, 1 << digit) : empty.push(cell)));
  const open = (cell) => 0x3fe & ~(rows[rowOf(cell)] | columns[columnOf(cell)] | boxes[boxOf(cell)]);
  const bits = (mask) => {
    let count = 0;
    for (; mask; mask &= mask - 1) count++;
    return count;
  };
  let guesses = 0;

  // The number of solutions below this node, up to `limit`.
  function search(limit) {
    let index = -1;
    let fewest = 10;
    for (let k = 0; k < empty.length && fewest > 1; k++) {
      const count = bits(open(empty[k]));
      if (count < fewest) [index, fewest] = [k, count];
    }
    if (index < 0) return 1;
    if (fewest > 1 && ++guesses > mostGuesses) return -1;
    const cell = empty[index];
    empty[index] = empty.at(-1);
    empty.pop();
    let found = 0;
    for (let left = open(cell); left && found >= 0 && found < limit; left &= left - 1) {
      const bit = left & -left;
      toggle(cell, bit);
      const more = search(limit - found);
      toggle(cell, bit);
      found = more < 0 ? -1 : found + more;
    }
    empty.push(cell);
    [empty[index], empty[empty.length - 1]] = [empty[empty.length - 1], empty[index]];
    return found;
  }

  return search(2);
}
