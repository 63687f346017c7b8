// Sudoku grids of 4 × 4, 6 × 6, 9 × 9 and 16 × 16: rows, columns, boxes, clashes, and symmetric variants of a puzzle.

export const CELLS = 81;
export const SYMBOLS = "123456789ABCDEFG";
const BOXES = { 4: [2, 2], 6: [2, 3], 9: [3, 3], 16: [4, 4] }; // rows and columns of a box, by size

export const empty = (size = 9) => Array(size * size).fill(0);
export const sizeOf = (digits) => Math.round(Math.sqrt(digits.length));
export const rowOf = (cell, size = 9) => Math.floor(cell / size);
export const columnOf = (cell, size = 9) => cell % size;
export const boxOf = (cell, size = 9) => {
  const [high, wide] = BOXES[size];
  return high * Math.floor(rowOf(cell, size) / high) + Math.floor(columnOf(cell, size) / wide);
};
// Whether a box ends to the right of a cell, and below it.
export const boxEnds = (cell, size) => {
  const [high, wide] = BOXES[size];
  return [(columnOf(cell, size) + 1) % wide === 0, (rowOf(cell, size) + 1) % high === 0];
};
export const whereIs = (cell, size = 9) => `Row ${rowOf(cell, size) + 1}, column ${columnOf(cell, size) + 1}`;

export const symbol = (digit) => SYMBOLS[digit - 1];
export const asText = (digits) => digits.map((digit) => symbol(digit) ?? ".").join("");
export const asDigits = (puzzle) => [...puzzle].map((cell) => SYMBOLS.indexOf(cell) + 1);

// The cells that share a row, a column or a box with an equal digit. 0 is empty.
export function clashes(digits) {
  const found = new Set();
  const size = sizeOf(digits);
  for (let a = 0; a < digits.length; a++) {
    for (let b = a + 1; b < digits.length; b++) {
      if (!digits[a] || digits[a] !== digits[b]) continue;
      if ([rowOf, columnOf, boxOf].some((group) => group(a, size) === group(b, size))) found.add(a).add(b);
    }
  }
  return found;
}

function shuffled(list) {
  const order = [...list];
  for (let last = order.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [order[last], order[other]] = [order[other], order[last]];
  }
  return order;
}

const range = (count) => Array.from({ length: count }, (_, k) => k);

// A random order of the lines that keeps bands of `high` lines together.
const lineOrder = (size, high) =>
  shuffled(range(size / high)).flatMap((band) => shuffled(range(high)).map((line) => high * band + line));

// A random symmetric variant of a puzzle: digits, lines and axes exchanged. It has as many solutions.
export function symmetricVariant(digits) {
  const size = sizeOf(digits);
  const [high, wide] = BOXES[size];
  const [rows, columns, names] = [lineOrder(size, high), lineOrder(size, wide), shuffled(range(size))];
  const transposed = high === wide && Math.random() < 0.5;
  return digits.map((_, cell) => {
    const [row, column] = [rows[rowOf(cell, size)], columns[columnOf(cell, size)]];
    const digit = digits[transposed ? size * column + row : size * row + column];
    return digit && names[digit - 1] + 1;
  });
}
