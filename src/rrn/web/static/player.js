// Play, pause, step, and a slider over steps.

import { calm, h, s } from "./dom.js";

const ICONS = {
  play: "M7 4v16l13-8z",
  pause: "M6 4h4v16H6zM14 4h4v16h-4z",
  back: "M17 4v16L7 12zM5 4h2v16H5z",
  next: "M7 4v16l10-8zM17 4h2v16h-2z",
};
const SHOW_ALL = 9000;
const SLOWEST = 450;
const QUICKEST = 70;

function iconButton(icon, label, onclick) {
  const path = s("path", { d: ICONS[icon] });
  const button = h(
    "button",
    { type: "button", class: "icon", "aria-label": label, title: label, onclick },
    s("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, path),
  );
  button.show = (name, text) => {
    path.setAttribute("d", ICONS[name]);
    button.setAttribute("aria-label", text);
    button.title = text;
  };
  return button;
}

export class Player {
  #timer = null;

  // show(step) draws a step; first is 0 where there is something to see before the first step.
  constructor(show, first = 0, name = (step, last) => `Step ${step} of ${last}`) {
    this.show = show;
    this.name = name;
    this.first = first;
    this.last = first;
    this.step = first;
    this.playButton = iconButton("play", "Play", () => (this.playing ? this.pause() : this.play()));
    this.slider = h("input", {
      type: "range",
      min: first,
      max: first,
      value: first,
      "aria-label": "Step",
      oninput: () => {
        this.pause();
        this.go(Number(this.slider.value));
      },
    });
    this.output = h("output", { class: "step" });
    this.element = h(
      "div",
      { class: "player", role: "group", "aria-label": "Steps", hidden: true },
      iconButton("back", "One step back", () => this.nudge(-1)),
      this.playButton,
      iconButton("next", "One step on", () => this.nudge(1)),
      this.slider,
      this.output,
    );
  }

  get playing() {
    return this.#timer !== null;
  }

  load(last, { autoplay = true } = {}) {
    this.pause();
    this.last = last;
    this.slider.max = last;
    this.element.hidden = false;
    if (autoplay && !calm()) {
      this.go(this.first);
      this.play();
    } else this.go(last);
  }

  clear() {
    this.pause();
    this.element.hidden = true;
  }

  go(step) {
    this.step = Math.min(Math.max(step, this.first), this.last);
    this.slider.value = this.step;
    const text = this.name(this.step, this.last);
    this.slider.setAttribute("aria-valuetext", text);
    this.output.textContent = text;
    this.show(this.step);
  }

  nudge(by) {
    this.pause();
    this.go(this.step + by);
  }

  play() {
    if (this.step >= this.last) this.go(this.first);
    const pace = Math.min(Math.max(SHOW_ALL / (this.last - this.first + 1), QUICKEST), SLOWEST);
    this.playButton.show("pause", "Pause");
    this.#timer = setInterval(() => {
      this.go(this.step + 1);
      if (this.step >= this.last) this.pause();
    }, pace);
  }

  pause() {
    clearInterval(this.#timer);
    this.#timer = null;
    this.playButton.show("play", "Play");
  }
}
