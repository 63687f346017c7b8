// Two small charts: a line over steps, and bars.

import { s } from "./dom.js";

const WIDTH = 340;
const HEIGHT = 190;
const LEFT = 34;
const BOTTOM = 30;
const TOP = 10;
const RIGHT = 10;

const across = (share) => LEFT + share * (WIDTH - LEFT - RIGHT);
const up = (share) => HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP);

function frame(label, xLabel) {
  return s(
    "svg",
    { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
    s("text", { x: across(0.5), y: HEIGHT - 2, class: "axis", "text-anchor": "middle" }, xLabel),
  );
}

function ticks(svg, values, most, horizontal) {
  for (const value of values) {
    const at = horizontal ? across(value / most) : up(value / most);
    if (!horizontal) svg.append(s("path", { class: "rule", d: `M${LEFT} ${at}H${WIDTH - RIGHT}` }));
    const position = horizontal
      ? { x: at, y: HEIGHT - 15, "text-anchor": "middle" }
      : { x: LEFT - 6, y: at + 4, "text-anchor": "end" };
    svg.append(s("text", { class: "axis", ...position }, String(value)));
  }
}

// values[t]: the value after step t. `mark(t)` moves the marker.
export function lineChart(values, most, label, xLabel, onchoose) {
  const svg = frame(label, xLabel);
  const last = values.length - 1;
  const spacing = Math.max(1, Math.ceil(last / 8));
  ticks(svg, [0, 1, 2, 3].map((third) => Math.round((third * most) / 3)), most, false);
  ticks(svg, values.map((_, t) => t).filter((t) => t % spacing === 0), Math.max(last, 1), true);
  const x = (t) => across(t / Math.max(last, 1));
  const points = values.map((value, t) => `${x(t).toFixed(1)},${up(value / most).toFixed(1)}`);
  const marker = s("circle", { class: "marker", r: 5 });
  const guide = s("path", { class: "guide" });
  svg.append(guide, s("polyline", { class: "line", points: points.join(" ") }), marker);
  svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect();
    const share = (((event.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT);
    onchoose(Math.round(Math.min(Math.max(share, 0), 1) * last));
  });
  const mark = (t) => {
    marker.setAttribute("cx", x(t));
    marker.setAttribute("cy", up(values[t] / most));
    guide.setAttribute("d", `M${x(t)} ${up(0)}V${TOP}`);
  };
  return { element: svg, mark };
}

// A bar for each of `count` values from 0 to 1. `show(values, right)` sets them.
export function barChart(count, label, xLabel) {
  const svg = frame(label, xLabel);
  const slot = (WIDTH - LEFT - RIGHT) / count;
  for (const share of [0, 0.5, 1]) {
    svg.append(
      s("path", { class: "rule", d: `M${LEFT} ${up(share)}H${WIDTH - RIGHT}` }),
      s("text", { class: "axis", x: LEFT - 6, y: up(share) + 4, "text-anchor": "end" }, `${100 * share}`),
    );
  }
  for (let value = 0; value < count; value += count / 5) {
    svg.append(s("text", { class: "axis", x: LEFT + (value + 0.5) * slot, y: HEIGHT - 15, "text-anchor": "middle" }, `${value}`));
  }
  const bars = Array.from({ length: count }, (_, value) =>
    s("rect", { class: "bar", x: LEFT + value * slot + 0.2, width: Math.max(slot - 0.4, 0.8), y: up(0), height: 0 }),
  );
  svg.append(...bars);
  const show = (values, right) => {
    values.forEach((value, k) => {
      bars[k].setAttribute("y", up(value));
      bars[k].setAttribute("height", up(0) - up(value));
      bars[k].classList.toggle("right", k === right);
    });
  };
  return { element: svg, show };
}
