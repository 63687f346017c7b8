// Data files of the site, each loaded once.

const fetched = new Map();

async function receive(name) {
  const response = await fetch(new URL(`../data/${name}.json`, import.meta.url));
  if (!response.ok) throw new Error(`The file data/${name}.json of this site is missing.`);
  return response.json();
}

export function data(name) {
  if (!fetched.has(name)) fetched.set(name, receive(name));
  return fetched.get(name);
}
