// Elements shared by the panels: description, status, bars and the table of answers by step.

import { counted, h, percent } from "./dom.js";

// The description of a panel and the accuracy of its network.
export const about = (info) =>
  h("p", { class: "about" }, info.about, " ", h("span", { class: "accuracy" }, info.accuracy), " ", h("span", { class: "size" }, `${counted(info.parameters, "weight")}.`));

// A share from 0 to 1 as a bar.
export function bar(share) {
  const element = h("span", { class: "meter", "aria-hidden": "true" }, h("span"));
  element.firstChild.style.width = `${100 * Math.min(share, 1)}%`;
  return element;
}

// A status message, which screen readers announce.
export function verdict() {
  const element = h("div", { class: "verdict", role: "status", "aria-live": "polite" });
  const show = (kind, headline, detail = "") => {
    element.className = `verdict ${kind}`;
    element.replaceChildren(h("strong", {}, headline), detail ? h("p", {}, detail) : "");
  };
  return {
    element,
    good: (headline, detail) => show("good", headline, detail),
    bad: (headline, detail) => show("bad", headline, detail),
    plain: (headline, detail) => show("plain", headline, detail),
    clear: () => {
      element.className = "verdict";
      element.replaceChildren();
    },
  };
}

// A table with the most probable answers after each step; `mark(step)` highlights a row.
export function stepsTable(steps, truth, onchoose) {
  const rows = steps.map(({ step, predictions }) => {
    const [best, ...others] = predictions;
    const next = others.filter(({ probability }) => probability >= 0.001);
    const row = h(
      "tr",
      { class: best.answer === truth ? "right" : "" },
      h("td", {}, h("button", { type: "button", class: "plain", "aria-label": `Show step ${step}`, onclick: () => onchoose(step) }, `${step}`)),
      h("td", { class: "answer" }, best.answer),
      h("td", { class: "probability" }, bar(best.probability), percent(best.probability)),
      h("td", { class: "others" }, next.map(({ answer, probability }) => `${answer} (${percent(probability)})`).join(", ") || "none"),
    );
    return row;
  });
  const head = ["Step", "Answer", "Probability", "Next"].map((text) => h("th", { scope: "col" }, text));
  const element = h(
    "div",
    { class: "table" },
    h("table", {}, h("caption", {}, "Answer after each step"), h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)),
  );
  const mark = (step) =>
    rows.forEach((row, index) => {
      const here = index === step - 1;
      row.classList.toggle("here", here);
      if (here) row.setAttribute("aria-current", "step");
      else row.removeAttribute("aria-current");
    });
  return { element, mark };
}
