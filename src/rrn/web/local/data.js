// Files of this site, each fetched once.

const fetched = new Map();

async function receive(name) {
  const response = await fetch(new URL(`../data/${name}.json`, import.meta.url));
  if (!response.ok) throw new Error(`A part of this page is missing (${name}).`);
  return response.json();
}

export function data(name) {
  if (!fetched.has(name)) fetched.set(name, receive(name));
  return fetched.get(name);
}
