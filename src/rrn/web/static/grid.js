// The Sudoku grid: its rules, how it is read and written, and other puzzles made of one.

export const CELLS = 81;
const BETWEEN = /[\s|+=│─┼┌┬┐├┤└┴┘║═╬┃━╋]/gu;
const EMPTY = /[0._*?xX·•∙⋅．＊？０-]/u;
const RULE = /^[\s*+|-]*-{3,}[\s*+|-]*$/;

export const rowOf = (cell) => Math.floor(cell / 9);
export const columnOf = (cell) => cell % 9;
export const boxOf = (cell) => 3 * Math.floor(rowOf(cell) / 3) + Math.floor(columnOf(cell) / 3);
export const seeEachOther = (a, b) =>
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

export const solves = (digits, givens) =>
  digits.every(Boolean) && givens.every((given, cell) => !given || given === digits[cell]) && !clashes(digits).size;

export const asText = (digits) => digits.map((digit) => digit || ".").join("");

// A dash may be an empty cell or part of a line between the cells: whichever makes 81.
export function readPuzzle(text) {
  const lines = text.normalize("NFKC").split("\n");
  const without = lines.filter((line) => !RULE.test(line)).join("");
  const ways = [without.replaceAll("-", ""), lines.join(""), without].map((way) => [...way.replace(BETWEEN, "")]);
  const cells = ways.find((way) => way.length === CELLS) ?? ways[0];
  const wrong = cells.find((cell) => !/[1-9]/.test(cell) && !EMPTY.test(cell));
  if (wrong) throw new Error(`“${wrong}” is neither a digit nor an empty cell (0, . or _).`);
  if (cells.length !== CELLS) throw new Error(`These are ${cells.length} cells, but a puzzle has 81.`);
  return cells.map((cell) => Number(cell) || 0);
}

function shuffled(list) {
  const order = [...list];
  for (let last = order.length - 1; last > 0; last--) {
    const place = Math.floor(Math.random() * (last + 1));
    [order[last], order[place]] = [order[place], order[last]];
  }
  return order;
}

// Lines in another order that keeps bands together: 9 numbers.
const lineOrder = () => shuffled([0, 1, 2]).flatMap((band) => shuffled([0, 1, 2]).map((line) => 3 * band + line));

// The same puzzle in other clothes: digits exchanged, lines exchanged, perhaps turned over. It has as many solutions.
export function disguise(digits) {
  const [rows, columns, names, turned] = [lineOrder(), lineOrder(), shuffled([1, 2, 3, 4, 5, 6, 7, 8, 9]), Math.random() < 0.5];
  return digits.map((_, cell) => {
    const [row, column] = [rows[rowOf(cell)], columns[columnOf(cell)]];
    const digit = digits[turned ? 9 * column + row : 9 * row + column];
    return digit && names[digit - 1];
  });
}
