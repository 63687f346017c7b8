// Reads a photo of a Sudoku in the browser: nothing is sent or stored. A tap on a cell takes its next likely reading.

import { counted, h, percent } from "../dom.js";
import { clashes, whereIs } from "../grid.js";
import { NoGrid, findGrid } from "../photo/grid.js";
import { fromRGBA } from "../photo/pixels.js";
import { cutCells, likeliestPuzzle, makeReader } from "../photo/reader.js";

const SIDE = 1000; // pixels of the longer side in which the grid is searched
const LEAST_SIDE = 100;
const MOST_BYTES = 40_000_000;
const MOST_PIXELS = 60_000_000;
const SHOWN = 360; // pixels of the straightened grid
const SURE = 0.98;
const TURNED_BELOW = 0.85;

let reader = null;

async function loadReader() {
  const response = await fetch(new URL("../photo/reader.bin", import.meta.url));
  if (!response.ok) throw new Error("The weights of the digit reader are missing.");
  return makeReader(new Float32Array(await response.arrayBuffer()));
}

async function pixelsOf(file) {
  if (file.type === "application/pdf") throw new NoGrid("This is a PDF; save the page as a picture (PNG or JPEG).");
  if (file.size > MOST_BYTES) throw new NoGrid(`The photo exceeds the size limit of ${MOST_BYTES.toLocaleString("en")} bytes.`);
  const bitmap = await createImageBitmap(file).catch(() => {
    throw new NoGrid("This is not a readable picture (PNG, JPEG or WebP), or it is damaged.");
  });
  const { width, height } = bitmap;
  if (width * height > MOST_PIXELS) throw new NoGrid(`${width} × ${height} pixels exceed the limit of ${MOST_PIXELS.toLocaleString("en")}.`);
  if (Math.min(width, height) < LEAST_SIDE) throw new NoGrid(`${width} × ${height} pixels are too few; expected at least ${LEAST_SIDE} each way.`);
  const scale = Math.min(1, SIDE / Math.max(width, height));
  const canvas = h("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.fillStyle = "white";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return fromRGBA(context.getImageData(0, 0, canvas.width, canvas.height));
}

// The cells of a grid turned to the left by a quarter: the grid, and each cell in it.
const turnedLeft = (cells) => {
  const turn = (list, side) => list.map((_, i) => list[(i % side) * side + side - 1 - Math.floor(i / side)]);
  return turn(cells, 9).map((cell) => turn(cell, 28));
};

const mostLikely = (row) => row.indexOf(Math.max(...row));

function confidence(probabilities) {
  const given = probabilities.filter((row) => mostLikely(row) > 0);
  return given.length ? given.reduce((sum, row) => sum + Math.max(...row), 0) / given.length : 1;
}

// What was read in a gray image: the digits, the probabilities of each cell, and the straightened grid.
export async function readPhoto(gray) {
  reader ??= loadReader();
  const read = await reader;
  const grid = findGrid(gray);
  let cells = cutCells(gray, grid);
  const every = [cells.map((cell) => read(cell))];
  if (confidence(every[0]) < TURNED_BELOW) {
    for (let turns = 1; turns < 4; turns++) every.push((cells = turnedLeft(cells)).map((cell) => read(cell)));
  }
  const turns = every.reduce((best, part, k) => (confidence(part) > confidence(every[best]) ? k : best), 0);
  const probabilities = every[turns];
  if (!probabilities.some((row) => mostLikely(row))) throw new NoGrid("The grid in the photo is empty: no digit was read in it.");
  const square = grid.sample(gray, Array.from({ length: SHOWN }, (_, k) => (k + 0.5) / SHOWN));
  return { digits: likeliestPuzzle(probabilities), probabilities, square, turns };
}

function draw(canvas, { data }, turns) {
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(SHOWN, SHOWN);
  data.forEach((value, i) => {
    const [y, x] = [Math.floor(i / SHOWN), i % SHOWN];
    const [row, column] = [[y, x], [SHOWN - 1 - x, y], [SHOWN - 1 - y, SHOWN - 1 - x], [x, SHOWN - 1 - y]][turns];
    pixels.data.set([value, value, value, 255], 4 * (row * SHOWN + column));
  });
  context.putImageData(pixels, 0, 0);
}

// The controls. `onread` gets the digits whenever they change; `status` shows messages; photos are dropped on `area`.
export function photoControls({ area, status, onread }) {
  let current = null;
  const input = (attributes) =>
    h("input", { type: "file", accept: "image/*", hidden: true, ...attributes, onchange: (event) => take(event.target.files[0], event.target) });
  const file = input({ "aria-label": "Read a photo" });
  const camera = input({ "aria-label": "Take a photo", capture: "environment" });
  const canvas = h("canvas", { width: SHOWN, height: SHOWN, "aria-hidden": "true" });
  const cells = Array.from({ length: 81 }, (_, cell) =>
    h("button", { type: "button", onclick: () => change(cell), onkeydown: (event) => type(cell, event) }),
  );
  const hint = h("p", { class: "hint" }, "Tap a wrong digit for its next likely reading, or type it. Then press Solve.");
  const shown = h("div", { class: "photo", hidden: true }, h("div", { class: "reading", role: "group", "aria-label": "What was read in the photo" }, canvas, cells), hint);
  const buttons = h(
    "div",
    { class: "buttons" },
    h("button", { type: "button", onclick: () => file.click() }, "Photo …"),
    h("button", { type: "button", class: "camera", onclick: () => camera.click() }, "Camera"),
    file,
    camera,
  );

  async function take(chosen, source) {
    if (!chosen) return;
    status.plain("Reading the photo …");
    await new Promise((resolve) => setTimeout(resolve, 20)); // so that the message is seen
    try {
      const found = await readPhoto(await pixelsOf(chosen));
      current = { ...found, orders: found.probabilities.map((row) => row.map((_, k) => k).sort((a, b) => row[b] - row[a])) };
      draw(canvas, found.square, found.turns);
      shown.hidden = false;
      show();
    } catch (error) {
      clear();
      status.bad("Not read", error.message);
    }
    if (source) source.value = "";
  }

  function show() {
    const { digits, probabilities } = current;
    cells.forEach((button, cell) => {
      const p = probabilities[cell][digits[cell]];
      button.textContent = digits[cell] || "";
      button.classList.toggle("doubtful", p < SURE);
      button.setAttribute("aria-label", `${whereIs(cell)}: ${digits[cell] || "empty"}, read with ${percent(p)}`);
    });
    onread([...digits]);
    if (clashes(digits).size) return; // which the panel has told
    const doubtful = cells.filter((button) => button.classList.contains("doubtful")).length;
    const note = doubtful ? ` ${counted(doubtful, "cell")} doubtful; they are marked.` : "";
    status.plain(`${counted(digits.filter(Boolean).length, "digit")} read in the photo`, `Is everything right?${note}`);
  }

  function change(cell) {
    const order = current.orders[cell];
    current.digits[cell] = order[(order.indexOf(current.digits[cell]) + 1) % order.length];
    show();
  }

  function type(cell, event) {
    const digit = ["Delete", "Backspace"].includes(event.key) ? 0 : Number(event.key);
    if (!(digit >= 0 && digit <= 9) || event.key === " " || event.ctrlKey || event.metaKey) return;
    current.digits[cell] = digit;
    event.preventDefault();
    show();
  }

  function clear() {
    current = null;
    shown.hidden = true;
  }

  const photoIn = (files) => [...files].find((part) => part.type.startsWith("image/") || part.type === "application/pdf");
  area.addEventListener("dragover", (event) => event.preventDefault());
  area.addEventListener("drop", (event) => {
    const dropped = photoIn(event.dataTransfer.files);
    if (!dropped) return;
    event.preventDefault();
    take(dropped);
  });
  document.addEventListener("paste", (event) => {
    const pasted = !area.hidden && photoIn(event.clipboardData?.files ?? []);
    if (!pasted) return;
    event.preventDefault();
    event.stopPropagation();
    take(pasted);
  }, true);

  return { buttons, shown, clear };
}
