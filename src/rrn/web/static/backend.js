// Requests to the server. The static site replaces this file by local/backend.js, which runs the networks in the browser.

async function receive(promise) {
  let response;
  try {
    response = await promise;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is it still running?");
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.error ?? `The server answers ${response.status}.`);
  return body;
}

export const get = (path, signal) => receive(fetch(path, { signal }));

const post = (path) => (body, signal) =>
  receive(
    fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal }),
  );

export const reference = "reference.html"; // documentation of the API

export const panels = () => get("api/panels");

export const sudoku = {
  sizes: [4, 6, 9, 16],
  examples: () => get("api/sudoku/examples"),
  read: post("api/sudoku/read"),
  solve: post("api/sudoku/solve"),
  influence: post("api/sudoku/influence"),
};

export const babi = {
  examples: (number) => get(`api/babi/examples?number=${number}`),
  words: () => get("api/babi/words"),
  ask: post("api/babi/ask"),
};

export const prettyClevr = {
  scenes: 1_000_000,
  scene: (seed) => get(`api/pretty-clevr/scene?seed=${seed}`),
  ask: post("api/pretty-clevr/ask"),
};

export const ages = {
  examples: () => get("api/ages/examples"),
  ask: post("api/ages/ask"),
};
