// A player of steps: play, pause, single steps, a slider and a speed.

import { calm, h, s } from "./dom.js";

const ICONS = {
  play: "M7 4v16l13-8z",
  pause: "M6 4h4v16H6zM14 4h4v16h-4z",
  back: "M17 4v16L7 12zM5 4h2v16H5z",
  next: "M7 4v16l10-8zM17 4h2v16h-2z",
};
const SHOW_ALL = 9000;
const SLOWEST = 600;
const QUICKEST = 70;
const SPEEDS = [0.25, 0.5, 1, 2, 4];
let speed = 1;

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

  // show(step) draws a step; first is 0 if there is a view before the first step.
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
    this.speed = h(
      "select",
      {
        class: "speed",
        "aria-label": "Speed",
        title: "Speed",
        onchange: () => {
          speed = Number(this.speed.value);
          if (this.playing) this.play();
        },
      },
      SPEEDS.map((value) => h("option", { value, selected: value === speed }, `${value}×`)),
    );
    this.element = h(
      "div",
      { class: "player", role: "group", "aria-label": "Steps", hidden: true },
      iconButton("back", "Previous step", () => this.nudge(-1)),
      this.playButton,
      iconButton("next", "Next step", () => this.nudge(1)),
      this.slider,
      this.output,
      this.speed,
    );
  }

  get playing() {
    return this.#timer !== null;
  }

  load(last) {
    this.pause();
    this.last = last;
    this.slider.max = last;
    this.element.hidden = false;
    this.speed.value = speed;
    if (calm()) this.go(last);
    else {
      this.go(this.first);
      this.play();
    }
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
    this.pause();
    if (this.step >= this.last) this.go(this.first);
    const pace = Math.min(Math.max(SHOW_ALL / (this.last - this.first + 1), QUICKEST), SLOWEST);
    this.playButton.show("pause", "Pause");
    this.#timer = setInterval(() => {
      this.go(this.step + 1);
      if (this.step >= this.last) this.pause();
    }, pace / speed);
  }

  pause() {
    clearInterval(this.#timer);
    this.#timer = null;
    this.playButton.show("play", "Play");
  }
}
