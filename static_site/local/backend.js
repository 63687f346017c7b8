// The backend of the static site: runs the networks in the browser and returns what the API of the server returns.

import { ask as askAges } from "./local/ages.js";
import { ask as askBabi } from "./local/babi.js";
import { data } from "./local/data.js";
import { ask as askScene, scene } from "./local/pretty_clevr.js";
import { influence, read, solve } from "./local/sudoku.js";

export const reference = null; // there is no API

export const panels = () => data("panels");

export const sudoku = { sizes: [9], examples: () => data("sudoku"), read, solve, influence };

export const babi = {
  examples: async (number) => {
    const { examples } = await data("babi");
    return examples[number % examples.length];
  },
  words: async () => (await data("babi")).words,
  ask: askBabi,
};

export const prettyClevr = { scenes: 1000, scene, ask: askScene };

export const ages = { examples: async () => (await data("ages")).examples, ask: askAges };
