// Pretty-CLEVR: select an object and a number of jumps; the network predicts the last object.

import { prettyClevr as backend } from "../backend.js";
import { counted, freshId, h, labelled, s } from "../dom.js";
import { Latest } from "../latest.js";
import { about, stepsTable, verdict } from "../parts.js";
import { Player } from "../player.js";
import { shareButton, writeAddress } from "../share.js";

const MOST_JUMPS = 7;
const RING = 8;
const SHORT = 26;
const FAR = 1.5; // a pointer that moves less selects
const EDGE = 5;
const LARGEST_SEED = 2 ** 32 - 1;

export async function create(info, section) {
  const latest = new Latest();
  const status = verdict();
  const player = new Player(showStep, 1);
  const results = h("div", { class: "results" });
  const sceneArea = h("div", { class: "scene" });
  const jumps = h("input", { type: "range", min: 0, max: MOST_JUMPS, value: 3, oninput: () => ask() });
  const jumpsShown = h("output");
  const truePath = h("input", { type: "checkbox", id: freshId("path"), onchange: drawPath });
  const by = h("select", { onchange: () => ask() }, h("option", { value: "colour" }, "its colour; the answer is a shape"), h("option", { value: "shape" }, "its shape; the answer is a colour"));
  let scene = null;
  let shapes = [];
  let pathLayer = null;
  let ring = null;
  let start = 0;
  let dragged = false;
  let found = null;
  let table = null;

  section.append(
    about(info),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "board" },
        sceneArea,
        h("p", { class: "hint" }, "Select the first object; drag objects, or move them with the arrow keys. Dashed ring: start. Solid ring: answer at the step shown."),
      ),
      h(
        "div",
        { class: "side" },
        h("div", { class: "field" }, labelled("Jumps", jumps), jumpsShown),
        labelled("Describe the start by", by),
        h("p", { class: "check" }, truePath, h("label", { for: truePath.id }, "Show the true path")),
        h("div", { class: "buttons" }, h("button", { type: "button", class: "primary", onclick: surprise }, "Surprise me"), shareButton()),
        status.element,
        player.element,
        results,
      ),
    ),
  );

  async function surprise() {
    start = Math.floor(Math.random() * 8);
    jumps.value = 3 + Math.floor(Math.random() * (MOST_JUMPS - 2));
    await visit(Math.floor(Math.random() * backend.scenes));
  }

  async function visit(seed) {
    try {
      await openScene(seed);
    } catch (error) {
      status.bad("No scene", error.message);
      return;
    }
    await ask();
  }

  async function openScene(seed) {
    scene = await backend.scene(seed);
    found = null;
    start = Math.min(start, scene.objects.length - 1);
    pathLayer = s("g", { class: "path", "aria-hidden": "true" });
    ring = s("circle", { class: "ring answer", r: RING, visibility: "hidden" });
    const startRing = s("circle", { class: "ring start", r: RING });
    shapes = scene.objects.map((object, index) =>
      s(
        "polygon",
        {
          class: "object",
          role: "button",
          tabindex: 0,
          "aria-label": `${object.colour} ${object.shape}`,
          fill: object.fill,
          points: object.outline.map((corner) => corner.join(",")).join(" "),
          onpointerdown: (event) => drag(event, index),
          onclick: () => choose(index),
          onkeydown: (event) => {
            nudge(event, index);
            if (event.key !== "Enter" && event.key !== " ") return;
            event.preventDefault();
            choose(index);
          },
        },
        s("title", {}, `${object.colour} ${object.shape}`),
      ),
    );
    sceneArea.replaceChildren(
      s("svg", { viewBox: "0 0 100 100", role: "group", "aria-label": "A scene of eight objects" }, startRing, ring, shapes, pathLayer),
    );
    sceneArea.startRing = startRing;
  }

  function choose(index) {
    if (dragged) return;
    start = index;
    ask();
  }

  // Moves an object with the pointer; the answer follows.
  function drag(event, index) {
    const picture = sceneArea.firstChild;
    const object = scene.objects[index];
    const from = { x: object.x, y: object.y };
    const move = (moved) => {
      const scale = 100 / picture.getBoundingClientRect().width;
      const [dx, dy] = [(moved.clientX - event.clientX) * scale, (moved.clientY - event.clientY) * scale];
      if (!dragged && Math.hypot(dx, dy) < FAR) return;
      dragged = true;
      place(index, from.x + dx, from.y + dy);
      ask();
    };
    const end = () => {
      removeEventListener("pointermove", move);
      setTimeout(() => (dragged = false));
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end, { once: true });
    addEventListener("pointercancel", end, { once: true });
  }

  function place(index, x, y) {
    const object = scene.objects[index];
    const inside = (value) => Math.round(100 * Math.min(Math.max(value, EDGE), 100 - EDGE)) / 100;
    const [dx, dy] = [inside(x) - object.x, inside(y) - object.y];
    Object.assign(object, { x: inside(x), y: inside(y), outline: object.outline.map((corner) => [corner[0] + dx, corner[1] + dy]) });
    shapes[index].setAttribute("points", object.outline.map((corner) => corner.join(",")).join(" "));
    scene.moved = true;
  }

  function nudge(event, index) {
    const by = { ArrowUp: [0, -2], ArrowDown: [0, 2], ArrowLeft: [-2, 0], ArrowRight: [2, 0] }[event.key];
    if (!by) return;
    event.preventDefault();
    place(index, scene.objects[index].x + by[0], scene.objects[index].y + by[1]);
    ask();
  }

  function around(circle, object) {
    circle.setAttribute("cx", object.x);
    circle.setAttribute("cy", object.y);
  }

  function drawPath() {
    pathLayer.replaceChildren();
    if (!truePath.checked || !found) return;
    const visited = found.path.map((index) => scene.objects[index]);
    visited.slice(1).forEach((to, jump) => {
      const from = visited[jump];
      const [dx, dy] = [to.x - from.x, to.y - from.y];
      const length = Math.hypot(dx, dy);
      const [ux, uy] = [dx / length, dy / length];
      const tip = [to.x - 6.5 * ux, to.y - 6.5 * uy];
      const corner = (side) => [tip[0] - 3 * ux + side * 1.7 * uy, tip[1] - 3 * uy - side * 1.7 * ux].join(",");
      const aside = length < SHORT ? 4.6 : 0;
      const middle = [from.x + dx * 0.48 - aside * uy, from.y + dy * 0.48 + aside * ux];
      pathLayer.append(
        s("path", { class: "shaft", d: `M${from.x + 6.5 * ux} ${from.y + 6.5 * uy}L${tip[0] - 2 * ux} ${tip[1] - 2 * uy}` }),
        s("polygon", { class: "tip", points: [tip.join(","), corner(1), corner(-1)].join(" ") }),
        s("circle", { class: "count", cx: middle[0], cy: middle[1], r: 2.6 }),
        s("text", { x: middle[0], y: middle[1] + 1.3, "text-anchor": "middle" }, `${jump + 1}`),
      );
    });
  }

  function showStep(step) {
    table.mark(step);
    const name = found.steps[step - 1].predictions[0].answer;
    const object = scene.objects.find(({ colour, shape }) => colour === name || shape === name);
    ring.setAttribute("visibility", object ? "visible" : "hidden");
    if (object) around(ring, object);
  }

  async function ask() {
    const object = scene.objects[start];
    const count = Number(jumps.value);
    jumpsShown.textContent = `${count}`;
    player.clear();
    shapes.forEach((shape, index) => shape.setAttribute("aria-pressed", index === start));
    around(sceneArea.startRing, object);
    ring.setAttribute("visibility", "hidden");
    found = null;
    drawPath();
    writeAddress(info.task, shared());
    const name = by.value === "colour" ? object.colour : object.shape;
    try {
      const asked = { seed: scene.seed, start: name, jumps: count };
      if (scene.moved) asked.positions = scene.objects.map(({ x, y }) => [x, y]);
      const result = await latest.run((signal) => backend.ask(asked, signal));
      if (!result) return;
      found = result;
      table = stepsTable(found.steps, found.truth, (step) => {
        player.pause();
        player.go(step);
      });
      results.replaceChildren(table.element);
      const asking = `${name}, ${counted(count, "jump")}`;
      if (found.answer === found.truth) status.good(`${asking}: ${found.answer}`, "Right.");
      else status.bad(`${asking}: ${found.answer}`, `Wrong: it is ${found.truth}.`);
      drawPath();
      player.load(found.steps.length);
    } catch (error) {
      status.bad("Not answered", error.message);
    }
  }

  const shared = () => (scene ? { seed: scene.seed, start, jumps: jumps.value, by: by.value } : {});
  const within = (text, low, high, otherwise) => {
    const value = Number(text ?? otherwise);
    return Number.isInteger(value) && value >= low && value <= high ? value : otherwise;
  };

  return {
    shared,
    hide: () => player.pause(),
    load: async (input) => {
      if (input.get("seed") === null && scene) return;
      start = within(input.get("start"), 0, 7, 0);
      jumps.value = within(input.get("jumps"), 0, MOST_JUMPS, 3);
      by.value = input.get("by") === "shape" ? "shape" : "colour";
      await visit(within(input.get("seed"), 0, LARGEST_SEED, 7));
    },
  };
}
