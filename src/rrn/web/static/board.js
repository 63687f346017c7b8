// A Sudoku grid that shows the probability of each digit in each cell, and that can be edited.

import { freshId, h, percent } from "./dom.js";
import { boxEnds, boxOf, clashes, columnOf, empty, rowOf, sizeOf, SYMBOLS, symbol, whereIs } from "./grid.js";

const DECIDED = 0.5;
const VISIBLE = 0.01;
export const LEAST_INFLUENCE = 0.0005; // less is shown as none
const LARGEST = 1.2; // scale of a digit that fills its cell

export class Grid {
  // Without `onedit` the grid is for reading only.
  constructor({ label = "Sudoku", onedit = null, onpaste = () => {}, onenter = () => {}, onpoint = () => {} }) {
    this.onedit = onedit;
    this.onenter = onenter;
    this.onpoint = onpoint;
    const hint = freshId("hint");
    this.element = h("div", {
      class: "grid",
      role: "grid",
      "aria-label": label,
      "aria-describedby": onedit && hint,
      onkeydown: (event) => this.#key(event),
      onpointerleave: (event) => event.pointerType !== "touch" && onpoint(null),
    });
    this.element.addEventListener("paste", (event) => {
      event.preventDefault();
      onpaste(event.clipboardData.getData("text"));
    });
    this.hint = h("p", { class: "hint", id: hint }, "Keys: arrows move, digits and letters type, Delete clears, Enter solves. You can paste a puzzle.");
    this.#resize(empty());
  }

  // Makes the cells anew if the puzzle has another size.
  #resize(givens) {
    this.givens = givens;
    const size = sizeOf(givens);
    if (size === this.size) return;
    this.size = size;
    this.at = 0;
    this.squares = squaresOf(Math.ceil(Math.sqrt(size)));
    this.cells = givens.map((_, cell) => this.#makeCell(cell, this.onpoint));
    this.element.style.setProperty("--size", size);
    this.element.replaceChildren(
      ...Array.from({ length: size }, (_, row) =>
        h("div", { role: "row", class: "row" }, this.cells.slice(size * row, size * row + size).map((cell) => cell.element)),
      ),
    );
  }

  #makeCell(cell, onpoint) {
    const digits = Array.from({ length: this.size }, (_, k) => h("span", { class: "digit", "aria-hidden": "true", hidden: true }, symbol(k + 1)));
    const [right, below] = boxEnds(cell, this.size);
    const edges = `${right ? " box-right" : ""}${below ? " box-below" : ""}`;
    const element = h(
      "div",
      {
        role: "gridcell",
        class: `cell r${rowOf(cell, this.size)} c${columnOf(cell, this.size)}${edges}`,
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
    const { size } = this;
    const [row, column] = [rowOf(this.at, size), columnOf(this.at, size)];
    const to = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      Home: [row, 0],
      End: [row, size - 1],
    }[event.key];
    const typed = event.key.length === 1 ? SYMBOLS.indexOf(event.key.toUpperCase()) + 1 : 0;
    if (to) this.cells[size * ((to[0] + size) % size) + ((to[1] + size) % size)].element.focus();
    else if (!this.onedit) return;
    else if (typed && typed <= size) this.type(typed);
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

  // probabilities: cells × digits, or null for the givens alone. Returns the cells that clash.
  show(givens, probabilities) {
    this.#resize(givens);
    const shown = givens.map((given, cell) => {
      if (given || !probabilities) return given;
      const most = Math.max(...probabilities[cell]);
      return most >= DECIDED ? probabilities[cell].indexOf(most) + 1 : 0;
    });
    const clashing = clashes(shown);
    this.cells.forEach(({ element, digits }, cell) => {
      const given = givens[cell];
      const chances = given || !probabilities ? digits.map((_, k) => Number(k + 1 === given)) : probabilities[cell];
      drawDigits(digits, chances, this.squares);
      element.classList.toggle("given", given > 0);
      element.classList.toggle("decided", shown[cell] > 0);
      element.classList.toggle("clash", clashing.has(cell));
      element.setAttribute("aria-label", describe(whereIs(cell, this.size), given, shown[cell], chances, clashing.has(cell)));
    });
    return clashing;
  }

  // Shades row, column and box of a cell by their influence on it, from 0 to 1; null removes the shades.
  shade(cell, influence) {
    this.cells.forEach(({ element }, other) => {
      const groups = !influence || other === cell ? [] : [
        rowOf(cell, this.size) === rowOf(other, this.size) && influence[1],
        columnOf(cell, this.size) === columnOf(other, this.size) && influence[2],
        boxOf(cell, this.size) === boxOf(other, this.size) && influence[3],
      ];
      const most = Math.max(0, ...groups.map(Number));
      element.classList.toggle("selected", Boolean(influence) && other === cell);
      element.classList.toggle("influential", most >= LEAST_INFLUENCE);
      element.style.setProperty("--influence", most.toFixed(4));
    });
  }
}

// The squares of a cell of parts × parts digits, as column, row and size, larger ones first; single parts are left out.
function squaresOf(parts) {
  const found = [];
  for (let size = parts; size > 1; size--) {
    for (let y = 0; y + size <= parts; y++) for (let x = 0; x + size <= parts; x++) found.push([x, y, size]);
  }
  return Object.assign(found, { parts });
}

// The area of a digit is its probability, as far as its square allows. Of nine digits, every digit has a third of the
// cell's width and height; a decided digit takes the largest square without other digits.
function drawDigits(digits, chances, squares) {
  const { parts } = squares;
  const best = chances.indexOf(Math.max(...chances));
  const others = chances.map((_, k) => k).filter((k) => k !== best && chances[k] >= VISIBLE);
  const place = (k) => [k % parts, Math.floor(k / parts)];
  const inside = (k, [x, y, size]) => place(k)[0] >= x && place(k)[0] < x + size && place(k)[1] >= y && place(k)[1] < y + size;
  const free = chances[best] >= DECIDED && squares.find((square) => !others.some((k) => inside(k, square)));
  digits.forEach((digit, k) => {
    digit.dataset.probability = chances[k];
    digit.hidden = chances[k] < VISIBLE;
    if (digit.hidden) return;
    const [x, y, size] = (k === best && free) || [...place(k), 1];
    const middle = (start) => ((100 * (start + size / 2)) / parts - 50).toFixed(2);
    const scale = Math.min(Math.sqrt(chances[k]), (LARGEST * size) / parts).toFixed(4);
    digit.style.transform = `translate(${middle(x)}cqw, ${middle(y)}cqh) scale(${scale})`;
  });
}

function describe(where, given, digit, chances, clashing) {
  const clash = clashing ? ", clashes" : "";
  if (given) return `${where}: ${symbol(given)}, given${clash}`;
  const most = Math.max(...chances);
  if (!most) return `${where}: empty`;
  return `${where}: ${digit ? "" : "undecided, most probable "}${symbol(chances.indexOf(most) + 1)}, ${percent(most)}${clash}`;
}
