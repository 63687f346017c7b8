// The 9 × 9 grid: rows, columns, boxes, clashes, and symmetric variants of a puzzle.

export const CELLS = 81;
export const EMPTY = Array(CELLS).fill(0);

export const rowOf = (cell) => Math.floor(cell / 9);
export const columnOf = (cell) => cell % 9;
export const boxOf = (cell) => 3 * Math.floor(rowOf(cell) / 3) + Math.floor(columnOf(cell) / 3);
export const whereIs = (cell) => `Row ${rowOf(cell) + 1}, column ${columnOf(cell) + 1}`;

export const asText = (digits) => digits.map((digit) => digit || ".").join("");
export const asDigits = (puzzle) => [...puzzle].map((cell) => Number(cell) || 0);

// The cells that share a row, a column or a box with an equal digit. 0 is empty.
export function clashes(digits) {
  const found = new Set();
  for (let a = 0; a < CELLS; a++) {
    for (let b = a + 1; b < CELLS; b++) {
      if (!digits[a] || digits[a] !== digits[b]) continue;
      if ([rowOf, columnOf, boxOf].some((group) => group(a) === group(b))) found.add(a).add(b);
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

// A random order of the nine lines that keeps bands together.
const lineOrder = () => shuffled([0, 1, 2]).flatMap((band) => shuffled([0, 1, 2]).map((line) => 3 * band + line));

// A random symmetric variant of a puzzle: digits, lines and axes exchanged. It has as many solutions.
export function symmetricVariant(digits) {
  const [rows, columns, names, transposed] = [lineOrder(), lineOrder(), shuffled([1, 2, 3, 4, 5, 6, 7, 8, 9]), Math.random() < 0.5];
  return digits.map((_, cell) => {
    const [row, column] = [rows[rowOf(cell)], columns[columnOf(cell)]];
    const digit = digits[transposed ? 9 * column + row : 9 * row + column];
    return digit && names[digit - 1];
  });
}
