// Talking to the server. Whatever goes wrong becomes an Error with a sentence in it.

async function receive(promise) {
  let response;
  try {
    response = await promise;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is 'rrn serve' still running?");
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.error ?? `The server answers ${response.status}.`);
  return body;
}

export const get = (path, signal) => receive(fetch(path, { signal }));

export const post = (path, body, signal) =>
  receive(
    fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal }),
  );

// Runs one request at a time: a newer one drops the older.
export class Latest {
  #controller = null;

  async run(work) {
    this.#controller?.abort();
    const controller = new AbortController();
    this.#controller = controller;
    try {
      return await work(controller.signal);
    } catch (error) {
      if (controller.signal.aborted) return null;
      throw error;
    }
  }

  drop() {
    this.#controller?.abort();
  }
}
