// What several panels share: the first sentences, the verdict, bars, and the table of answers by step.

import { counted, h, percent } from "./dom.js";

// What the panel is about, and how good its network is.
export const about = (info) =>
  h("p", { class: "about" }, info.about, " ", h("span", { class: "accuracy" }, info.accuracy), " ", h("span", { class: "size" }, `${counted(info.parameters, "weight")}.`));

// A share from 0 to 1 as a bar.
export function bar(share) {
  const element = h("span", { class: "meter", "aria-hidden": "true" }, h("span"));
  element.firstChild.style.width = `${100 * Math.min(share, 1)}%`;
  return element;
}

// A live region: what it says is also read out.
export function verdict() {
  const element = h("div", { class: "verdict", role: "status", "aria-live": "polite" });
  const say = (kind, headline, detail = "") => {
    element.className = `verdict ${kind}`;
    element.replaceChildren(h("strong", {}, headline), detail ? h("p", {}, detail) : "");
  };
  return {
    element,
    good: (headline, detail) => say("good", headline, detail),
    bad: (headline, detail) => say("bad", headline, detail),
    plain: (headline, detail) => say("plain", headline, detail),
    clear: () => {
      element.className = "verdict";
      element.replaceChildren();
    },
  };
}

// A row for each step with the best answer and its runners-up; `mark(step)` sets the row of a step apart.
export function stepsTable(steps, truth, onchoose) {
  const rows = steps.map(({ step, guesses }) => {
    const [best, ...others] = guesses;
    const runners = others.filter((guess) => guess.probability >= 0.001);
    const row = h(
      "tr",
      { class: best.answer === truth ? "right" : "" },
      h("td", {}, h("button", { type: "button", class: "plain", "aria-label": `Show step ${step}`, onclick: () => onchoose(step) }, `${step}`)),
      h("td", { class: "answer" }, best.answer),
      h("td", { class: "probability" }, bar(best.probability), percent(best.probability)),
      h("td", { class: "others" }, runners.map((guess) => `${guess.answer} (${percent(guess.probability)})`).join(", ") || "none"),
    );
    return row;
  });
  const head = ["Step", "Answer", "Probability", "Runners-up"].map((text) => h("th", { scope: "col" }, text));
  const element = h(
    "div",
    { class: "table" },
    h("table", {}, h("caption", {}, "The answer after each step"), h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)),
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
