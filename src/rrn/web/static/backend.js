// What the panels ask of the networks: here, of the server that this page came from. `make site` puts another file in
// this one's place, which runs the networks in the browser; what both return is described by the API.

import { get, post } from "./api.js";

export const reference = "reference.html"; // where the API is described

export const panels = () => get("api/panels");

export const sudoku = {
  examples: () => get("api/sudoku/examples"),
  solve: (asked, signal) => post("api/sudoku/solve", asked, signal),
  heard: (asked, signal) => post("api/sudoku/heard", asked, signal),
};

export const babi = {
  examples: (number) => get(`api/babi/examples?number=${number}`),
  words: () => get("api/babi/words"),
  ask: (asked, signal) => post("api/babi/ask", asked, signal),
};

export const prettyClevr = {
  scenes: 1_000_000,
  scene: (seed) => get(`api/pretty-clevr/scene?seed=${seed}`),
  ask: (asked, signal) => post("api/pretty-clevr/ask", asked, signal),
};

export const ages = {
  examples: () => get("api/ages/examples"),
  ask: (asked, signal) => post("api/ages/ask", asked, signal),
};
