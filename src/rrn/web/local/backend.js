// What the panels ask of the networks, answered in the browser itself: the same as the server's API answers, from the
// same weights. `make site` writes this file in the place of the other backend.js, with the networks and data beside it.

import { ask as askAges } from "./local/ages.js";
import { ask as askBabi } from "./local/babi.js";
import { data } from "./local/data.js";
import { ask as askScene, scene } from "./local/pretty_clevr.js";
import { heard, solve } from "./local/sudoku.js";

export const reference = null; // there is no API

export const panels = () => data("panels");

export const sudoku = { examples: () => data("sudoku"), solve, heard };

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
