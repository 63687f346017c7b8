// Talking to the server. Whatever goes wrong becomes an Error with a sentence in it.

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

export const post = (path, body, signal) =>
  receive(
    fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal }),
  );
