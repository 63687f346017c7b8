// Pretty-CLEVR: the scenes of the site, their true paths, and the network.

import { data } from "./data.js";
import { best, stepPredictions, byStep, floats, integers, run } from "./network.js";

const OBJECTS = 8;
const round = (value) => Math.round(100 * value) / 100;

async function objectsOf(seed) {
  const { scenes } = await data("scenes");
  if (!scenes[seed]) throw new Error(`This site has the scenes 0 to ${scenes.length - 1}; ${seed} does not exist.`);
  const [xs, ys, colours, shapes] = scenes[seed];
  return xs.map((x, k) => ({ x, y: ys[k], colour: colours[k], shape: shapes[k] }));
}

export async function scene(seed) {
  const { colours, shapes, palette, outlines } = await data("scenes");
  const objects = (await objectsOf(seed)).map(({ x, y, colour, shape }) => ({
    colour: colours[colour],
    shape: shapes[shape],
    x: round(100 * x),
    y: round(100 - 100 * y),
    fill: palette[colour],
    outline: outlines[shape].map(([dx, dy]) => [round(100 * (x + dx)), round(100 - 100 * (y + dy))]),
  }));
  return { seed, objects };
}

// The path of jumps, each to the nearest object not yet visited.
function pathOf(objects, start, jumps) {
  const path = [start];
  while (path.length <= jumps) {
    const here = objects[path.at(-1)];
    const distance = (k) => (objects[k].x - here.x) ** 2 + (objects[k].y - here.y) ** 2;
    const left = objects.map((_, k) => k).filter((k) => !path.includes(k));
    path.push(left.reduce((near, k) => (distance(k) < distance(near) ? k : near)));
  }
  return path;
}

export async function ask({ seed, start, jumps, positions = null }) {
  const { colours, shapes } = await data("scenes");
  const objects = await objectsOf(seed);
  positions?.forEach(([x, y], k) => Object.assign(objects[k], { x: x / 100, y: 1 - y / 100 }));
  const names = [...colours, ...shapes];
  const number = names.indexOf(start);
  const byColour = number < OBJECTS;
  const path = pathOf(objects, objects.findIndex((object) => (byColour ? object.colour : object.shape + OBJECTS) === number), jumps);
  const { outputs } = await run("pretty-clevr", {
    positions: floats(objects.flatMap(({ x, y }) => [x, y]), [1, OBJECTS, 2]),
    colours: integers(objects.map(({ colour }) => colour), [1, OBJECTS]),
    shapes: integers(objects.map(({ shape }) => shape), [1, OBJECTS]),
    start: integers([number], [1]),
    jumps: integers([jumps], [1]),
  });
  const probabilities = byStep(outputs).map(([row]) => row);
  const end = objects[path.at(-1)];
  return {
    answer: names[best(probabilities.at(-1))],
    truth: byColour ? shapes[end.shape] : colours[end.colour],
    path,
    steps: stepPredictions(probabilities, names),
  };
}
