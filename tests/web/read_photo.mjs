// Reads gray images with the page's scripts: node read_photo.mjs STATIC_FOLDER IMAGE … Prints one JSON object per image.
// An image file: width and height as two int32, then the pixels as bytes.

import { readFileSync } from "node:fs";

const [folder, ...files] = process.argv.slice(2);
const { findGrid } = await import(`${folder}/photo/grid.js`);
const { cutCells, likeliestPuzzle, makeReader } = await import(`${folder}/photo/reader.js`);
const bytes = readFileSync(`${folder}/photo/reader.bin`);
const read = makeReader(new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)));

for (const file of files) {
  const content = readFileSync(file);
  const [wide, high] = [content.readInt32LE(0), content.readInt32LE(4)];
  const gray = { wide, high, data: Float32Array.from(content.subarray(8)) };
  try {
    const grid = findGrid(gray);
    const probabilities = cutCells(gray, grid).map((cell) => read(cell));
    console.log(JSON.stringify({ corners: grid.corners, digits: likeliestPuzzle(probabilities), probabilities }));
  } catch (error) {
    console.log(JSON.stringify({ error: error.message }));
  }
}
