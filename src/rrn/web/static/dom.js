// Builds elements without HTML strings, so that text of users cannot become markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

export const h = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const s = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

let counter = 0;
export const freshId = (prefix) => `${prefix}-${++counter}`;

export function labelled(text, control, attributes = {}) {
  control.id ||= freshId("control");
  return h("div", { class: "field", ...attributes }, h("label", { for: control.id }, text), control);
}

export const percent = (p) => {
  const value = 100 * p;
  if (value > 99.9 && value < 100) return "> 99.9\u00a0%";
  return `${value === 100 || value === 0 ? value.toFixed(0) : value.toFixed(1)}\u00a0%`;
};

export const counted = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
