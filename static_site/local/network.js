// Runs the ONNX networks of the site with onnxruntime-web.

import * as ort from "../ort/ort.wasm.bundle.min.mjs";

ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmPaths = { wasm: new URL("../ort/ort-wasm-simd-threaded.wasm", import.meta.url).href };
ort.env.logLevel = "error";

const loaded = new Map();

function load(name) {
  if (!loaded.has(name)) loaded.set(name, ort.InferenceSession.create(new URL(`../networks/${name}.onnx`, import.meta.url).href));
  return loaded.get(name);
}

export const floats = (values, shape) => new ort.Tensor("float32", Float32Array.from(values), shape);
export const integers = (values, shape) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), shape);
export const zeros = (shape) => new ort.Tensor("float32", new Float32Array(shape.reduce((a, b) => a * b)), shape);

export async function run(name, inputs) {
  const session = await load(name);
  return session.run(inputs);
}

// The last dimension of an input, such as the width of a state.
export async function widthOf(name, input) {
  const session = await load(name);
  const index = session.inputNames.indexOf(input);
  return session.inputMetadata[index].shape.at(-1);
}

export function softmax(logits) {
  const most = Math.max(...logits);
  const powers = Array.from(logits, (logit) => Math.exp(logit - most));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / sum);
}

// Logits (steps, stories, choices) → probabilities [step][story][choice].
export function byStep({ data, dims: [steps, stories, choices] }) {
  const row = (step, story) => softmax(data.slice((step * stories + story) * choices, (step * stories + story + 1) * choices));
  return Array.from({ length: steps }, (_, step) => Array.from({ length: stories }, (_, story) => row(step, story)));
}

// The most probable answers after each step, as in the API. probabilities: [step][choice].
export const stepPredictions = (probabilities, names, count = 4) =>
  probabilities.map((row, t) => {
    const order = row.map((_, k) => k).sort((a, b) => row[b] - row[a] || a - b).slice(0, count);
    return { step: t + 1, predictions: order.map((k) => ({ answer: names[k], probability: row[k] })) };
  });

export const best = (row) => row.indexOf(Math.max(...row));
