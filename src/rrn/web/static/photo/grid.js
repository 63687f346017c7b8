// Finds the grid of a Sudoku in a photo, and the way its lines run. The Python package has the same in tasks/photo/grid.py.

import { at, blur, image, inkOf, largest, map, mean, meanAlong, quantile, transposed } from "./pixels.js";

const CELL = 32; // pixels of a cell in the straightened image
const MARGIN = 16;
const CANDIDATES = 12;
const OTHER_SIZES = [4, 6, 16];
const ROUNDS = [[2, 0.42], [3, 0.28], [4, 0.16]]; // degree of the bending and search window in cells

export class NoGrid extends Error {}

// A mapping from places in the grid, (0, 0) to (1, 1), to pixels: a bending, then a perspective.
class Grid {
  constructor(perspective, bending = null, degree = 0) {
    Object.assign(this, { perspective, bending, degree, inverted: false });
  }

  pixel(u, v) {
    const [du, dv] = this.bending ? [0, 1].map((axis) => dot(terms(u, v, this.degree), this.bending[axis])) : [0, 0];
    const [a, b, c, d, e, f, g, h] = this.perspective;
    const [x, y] = [u + du, v + dv];
    const w = g * x + h * y + 1;
    return [(a * x + b * y + c) / w, (d * x + e * y + f) / w];
  }

  get corners() {
    return [[0, 0], [1, 0], [1, 1], [0, 1]].map(([u, v]) => this.pixel(u, v));
  }

  // The image at all pairs of places; the mapping is interpolated between nodes.
  sample(source, along) {
    const nodes = 40;
    const step = 1.2 / (nodes - 1);
    const mesh = [image(nodes, nodes), image(nodes, nodes)];
    for (let j = 0; j < nodes; j++) {
      for (let i = 0; i < nodes; i++) {
        this.pixel(i * step - 0.1, j * step - 0.1).forEach((value, axis) => (mesh[axis].data[j * nodes + i] = value));
      }
    }
    const places = along.map((place) => (place + 0.1) / step);
    const result = image(along.length, along.length);
    places.forEach((v, y) => places.forEach((u, x) => (result.data[y * along.length + x] = at(source, at(mesh[0], u, v), at(mesh[1], u, v)))));
    return result;
  }
}

const dot = (a, b) => a.reduce((sum, value, k) => sum + value * b[k], 0);

function terms(u, v, degree) {
  const [x, y] = [2 * u - 1, 2 * v - 1];
  const found = [];
  for (let a = 0; a <= degree; a++) for (let b = 0; b <= degree - a; b++) found.push(x ** a * y ** b);
  return found;
}

// Solves a system of linear equations by elimination.
function solve(matrix, values) {
  const rows = matrix.map((row, k) => [...row, values[k]]);
  const n = rows.length;
  for (let k = 0; k < n; k++) {
    const pivot = rows.slice(k).reduce((best, row, i) => (Math.abs(row[k]) > Math.abs(rows[best][k]) ? k + i : best), k);
    [rows[k], rows[pivot]] = [rows[pivot], rows[k]];
    for (let i = k + 1; i < n; i++) {
      const share = rows[i][k] / (rows[k][k] || 1e-12);
      for (let j = k; j <= n; j++) rows[i][j] -= share * rows[k][j];
    }
  }
  const found = Array(n).fill(0);
  for (let k = n - 1; k >= 0; k--) {
    found[k] = (rows[k][n] - rows[k].slice(k + 1, n).reduce((sum, value, j) => sum + value * found[k + 1 + j], 0)) / (rows[k][k] || 1e-12);
  }
  return found;
}

// The perspective that maps the unit square onto four corners.
function perspectiveOf(corners) {
  const [matrix, values] = [[], []];
  [[0, 0], [1, 0], [1, 1], [0, 1]].forEach(([u, v], k) => {
    const [x, y] = corners[k];
    matrix.push([u, v, 1, 0, 0, 0, -u * x, -v * x], [0, 0, 0, u, v, 1, -u * y, -v * y]);
    values.push(x, y);
  });
  return solve(matrix, values);
}

const cross = ([ax, ay], [bx, by], [cx, cy]) => (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);

function hullOf(points) {
  const sorted = points.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const half = (list) => {
    const kept = [];
    for (const point of list) {
      while (kept.length > 1 && cross(kept.at(-2), kept.at(-1), point) <= 0) kept.pop();
      kept.push(point);
    }
    return kept.slice(0, -1);
  };
  return [...half(sorted), ...half(sorted.reverse())];
}

// The four corners of a convex outline that cut off the least, from the top left clockwise.
function fourCorners(hull) {
  const points = [...hull];
  while (points.length > 4) {
    const areas = points.map((point, k) => Math.abs(cross(points.at(k - 1), point, points[(k + 1) % points.length])));
    points.splice(areas.indexOf(Math.min(...areas)), 1);
  }
  if (cross(points[0], points[1], points[2]) < 0) points.reverse();
  const sums = points.map(([x, y]) => x + y);
  const first = sums.indexOf(Math.min(...sums));
  return [...points.slice(first), ...points.slice(0, first)];
}

// Corners of the largest connected drawings, and whether they reach the edge of the image.
function candidates(gray, widening) {
  const { wide, high } = gray;
  const local = mean(blur(gray, 1), Math.max(5, Math.floor(Math.max(wide, high) / 64)));
  let mask = map(blur(gray, 1), (value, i) => Number(value < local.data[i] - 6));
  if (widening) mask = largest(mask, widening);
  const found = [];
  const stack = new Int32Array(wide * high);
  for (let start = 0; start < mask.data.length; start++) {
    if (!mask.data[start]) continue;
    const rows = new Map(); // the first and the last pixel of each row
    let [depth, left, right] = [1, wide, 0];
    stack[0] = start;
    mask.data[start] = 0;
    while (depth) {
      const pixel = stack[--depth];
      const [y, x] = [Math.floor(pixel / wide), pixel % wide];
      const ends = rows.get(y);
      if (!ends) rows.set(y, [x, x]);
      else if (x < ends[0]) ends[0] = x;
      else if (x > ends[1]) ends[1] = x;
      if (x < left) left = x;
      if (x > right) right = x;
      for (let dy = -1; dy <= 1; dy++) {
        for (let dx = -1; dx <= 1; dx++) {
          const next = pixel + dy * wide + dx;
          if (x + dx < 0 || x + dx >= wide || next < 0 || next >= mask.data.length || !mask.data[next]) continue;
          mask.data[next] = 0;
          stack[depth++] = next;
        }
      }
    }
    const ys = [...rows.keys()];
    const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
    const extent = Math.min(right - left, bottom - top) + 1;
    if (Math.max(right - left, bottom - top) > 3 * extent || extent < 0.12 * Math.min(wide, high)) continue;
    const hull = hullOf([...rows].flatMap(([y, [a, b]]) => (a === b ? [[a, y]] : [[a, y], [b, y]])));
    const atEdge = left <= 1 || top <= 1 || right >= wide - 2 || bottom >= high - 2;
    if (hull.length >= 4) found.push({ corners: fourCorners(hull), atEdge, extent });
  }
  return found.sort((a, b) => b.extent - a.extent).slice(0, CANDIDATES);
}

const straightened = (ink, grid) =>
  grid.sample(ink, Array.from({ length: 9 * CELL + 2 * MARGIN }, (_, k) => (k + 0.5 - MARGIN) / (9 * CELL)));

// How much every pixel looks like one of a horizontal line.
function ridges(square, size) {
  const cell = (9 * CELL) / size;
  const apart = Math.max(2, Math.round(0.15 * cell));
  const calm = transposed(meanAlong(transposed(square), 1));
  const smooth = meanAlong(calm, Math.max(1, Math.round(0.4 * cell)));
  const row = (y) => Math.min(Math.max(y, 0), smooth.high - 1) * smooth.wide;
  return map(smooth, (value, i) => {
    const [y, x] = [Math.floor(i / smooth.wide), i % smooth.wide];
    return value - Math.max(smooth.data[row(y - apart) + x], smooth.data[row(y + apart) + x]);
  });
}

// Strength near every horizontal line: [line][piece][shift].
function profiles(found, size, window, offset = 0) {
  const cell = (9 * CELL) / size;
  const reach = Math.max(1, Math.round(window * cell));
  const last = found.high - 1;
  return Array.from({ length: size + (offset ? 0 : 1) }, (_, line) => {
    const middle = Math.round(MARGIN + cell * (line + offset) - 0.5);
    return Array.from({ length: 2 * size }, (_, piece) => {
      const x = Math.round(MARGIN + cell * (piece / 2 + 0.25) - 0.5);
      return Array.from({ length: 2 * reach + 1 }, (_, k) => found.data[Math.min(Math.max(middle + k - reach, 0), last) * found.wide + x]);
    });
  });
}

// Polynomials nearest to the shifts of lines, for both axes; shifts far from them lose their weight.
function fit(places, shifts, weights, degree) {
  const rows = places.map(([u, v]) => terms(u, v, degree));
  const n = rows[0].length;
  const middle = quantile(weights, 0.5);
  const capped = weights.map((weight) => Math.min(weight, 2 * middle + 1e-6));
  let current = capped;
  let found;
  for (let round = 0; round < 6; round++) {
    const matrix = Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => (i === j ? 1e-4 : 0)));
    const values = Array(n).fill(0);
    rows.forEach((row, k) => {
      for (let i = 0; i < n; i++) {
        values[i] += current[k] * row[i] * shifts[k];
        for (let j = 0; j < n; j++) matrix[i][j] += current[k] * row[i] * row[j];
      }
    });
    found = solve(matrix, values);
    current = capped.map((weight, k) => weight / (1 + ((shifts[k] - dot(rows[k], found)) / 0.012) ** 2) ** 2);
  }
  return found;
}

// The grid with these corners, bent so that its lines run along the ink, and whether they are all seen.
function followLines(ink, corners, size = 9) {
  let grid = new Grid(perspectiveOf(corners));
  const cell = (9 * CELL) / size;
  for (const [degree, window] of ROUNDS) {
    const square = straightened(ink, grid);
    const bending = [0, 1].map((axis) => {
      const strengths = profiles(ridges(axis ? square : transposed(square), size), size, window);
      const [places, shifts, weights] = [[], [], []];
      strengths.forEach((pieces, line) =>
        pieces.forEach((profile, piece) => {
          const reach = (profile.length - 1) / 2;
          const scores = profile.map((value, k) => value * (1 - (0.4 * Math.abs(k - reach)) / reach));
          const best = scores.indexOf(Math.max(...scores));
          const along = (piece / 2 + 0.25) / size;
          const place = axis ? [along, line / size] : [line / size, along];
          const before = grid.bending ? dot(terms(...place, grid.degree), grid.bending[axis]) : 0;
          places.push(place);
          shifts.push(before + (best - reach) / cell / size);
          weights.push(Math.max(profile[best], 0));
        }),
      );
      return fit(places, shifts, weights, degree);
    });
    grid = new Grid(grid.perspective, bending, degree);
  }
  const square = straightened(ink, grid);
  const both = [square, transposed(square)].map((turned) => ridges(turned, size));
  const lines = both.flatMap((found) => profiles(found, size, 0.1).map((pieces) => pieces.map((profile) => Math.max(...profile))));
  const between = both.flatMap((found) => profiles(found, size, 0.1, 0.5).flatMap((pieces) => pieces.map((profile) => Math.max(...profile))));
  const usual = quantile(lines.flat(), 0.5);
  const seen = lines.map((line) => line.filter((value) => value > Math.max(0.02, 0.35 * usual)).length / line.length).sort((a, b) => a - b);
  grid.contrast = usual / Math.max(quantile(between, 0.6), 0.01);
  grid.isGrid = seen[1] >= 0.55 && grid.contrast > 2;
  return grid;
}

const inside = ([x, y], corners) => corners.every((corner, k) => cross(corner, corners[(k + 1) % 4], [x, y]) >= 0);

// The 9 × 9 grid in a gray image. Throws `NoGrid` where there is none, or several.
export function findGrid(gray) {
  const others = [];
  let cutOff = false;
  for (const inverted of [false, true]) {
    const seen = inverted ? map(gray, (value) => 255 - value) : gray;
    const ink = inkOf(seen, Math.max(3, Math.floor(Math.max(gray.wide, gray.high) / 80)));
    for (const widening of [0, 1, 2]) {
      const found = [];
      for (const { corners, atEdge } of candidates(seen, widening)) {
        const middle = [0, 1].map((axis) => corners.reduce((sum, corner) => sum + corner[axis] / 4, 0));
        if (found.some((grid) => inside(middle, grid.corners))) continue;
        const grid = followLines(ink, corners);
        if (grid.isGrid) found.push(Object.assign(grid, { inverted }));
        else if (atEdge) cutOff = true;
        else for (const size of OTHER_SIZES) others.push({ size, grid: followLines(ink, corners, size) });
      }
      if (found.length > 1) throw new NoGrid(`The photo shows ${found.length} grids; show one.`);
      if (found.length) return found[0];
    }
  }
  const clear = others.filter(({ grid }) => grid.isGrid).sort((a, b) => b.grid.contrast - a.grid.contrast);
  if (clear.length) throw new NoGrid(`The photo shows a grid of ${clear[0].size} × ${clear[0].size} cells; expected 9 × 9.`);
  const cut = cutOff ? " What may be one reaches the edge of the photo: show the whole grid." : "";
  throw new NoGrid(`No Sudoku grid of 9 × 9 cells was found in the photo.${cut}`);
}
