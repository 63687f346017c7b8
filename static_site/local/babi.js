// bAbI: reads sentences and runs the network, also without each fact in turn to measure its importance.

import { data } from "./data.js";
import { best, stepPredictions, byStep, integers, run } from "./network.js";

const WIDTH = 12; // words of a sentence, at most
const FACTS = 20;

const APART = /\b(puts?|set|laid|lays|picks|picked) (the \w+) (down|up)\b/gi; // bAbI writes "put down the milk"

const sentencesOf = (text) => [...text.matchAll(/[^.!?…\n]*[\p{L}\p{N}_][^.!?…\n]*[.!?…]?/gu)].map(([sentence]) => sentence.trim());
const tokens = (sentence) => sentence.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
const capitalised = (word) => word[0].toUpperCase() + word.slice(1);

// Replaces other words by those of the vocabulary.
function reader(readAs) {
  const words = new Map(readAs);
  const longest = [...words.keys()].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(`\\b(${longest.join("|")})\\b`, "gi");
  const replaced = new Map();
  const turn = (all, verb, what, particle) => {
    const turned = `${verb} ${particle} ${what}`;
    replaced.set(all.toLowerCase(), turned);
    return turned;
  };
  const read = (sentence) =>
    sentence.replaceAll("’", "'").replace(APART, turn).replace(pattern, (word) => {
      const meant = words.get(word.toLowerCase());
      replaced.set(word.toLowerCase(), meant);
      return word[0] === word[0].toLowerCase() ? meant : capitalised(meant);
    });
  return { read, replaced };
}

// The edit distance of two words with transpositions, up to `most`.
function editDistance(a, b, most = 2) {
  if (Math.abs(a.length - b.length) > most) return most + 1;
  const rows = Array.from({ length: a.length + 1 }, (_, i) => [i, ...Array(b.length).fill(0)]);
  for (let j = 1; j <= b.length; j++) rows[0][j] = j;
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      const swap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? rows[i - 2][j - 2] + 1 : Infinity;
      rows[i][j] = Math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] !== b[j - 1]), swap);
    }
  }
  return rows[a.length][b.length];
}

function hintFor(word, sentence, { words, like }) {
  const group = like.find(([, list]) => list.includes(word))?.[0] ?? (new RegExp(`\\b${capitalised(word)}\\b`, "u").test(sentence) ? "people" : null);
  const most = word.length < 5 ? (group ? 0 : 1) : word.length < 8 ? 1 : 2;
  const near = words.groups.flatMap((part) => part.words).filter((known) => editDistance(word, known.toLowerCase()) <= most);
  if (near.length) return `; did you mean ${near.slice(0, 3).map((known) => `'${known}'`).join(" or ")}?`;
  const known = words.groups.find(({ title }) => title === group)?.words;
  return known ? `; it knows ${known.slice(0, 9).join(", ")}${known.length > 9 ? " …" : ""}` : "";
}

function check(sentences, numbers, about) {
  for (const sentence of sentences) {
    const unknown = tokens(sentence).find((word) => !numbers.has(word));
    if (unknown) throw new Error(`'${sentence}': the network does not know the word '${unknown}'${hintFor(unknown, sentence, about)}`);
    const count = sentence.split(/\s+/).length;
    if (count > WIDTH) throw new Error(`'${sentence}' has ${count} words; the limit is ${WIDTH}.`);
  }
}

// Probabilities for stories of equal length. The program needs at least two stories.
async function answers(stories, numbers) {
  const twice = stories.length === 1 ? [stories[0], stories[0]] : stories;
  const row = (sentence) => {
    const known = tokens(sentence).map((word) => numbers.get(word) + 1);
    return [...known, ...Array(WIDTH - known.length).fill(0)];
  };
  const words = twice.flatMap((sentences) => sentences.flatMap(row));
  const { outputs } = await run("babi", { words: integers(words, [twice.length, twice[0].length, WIDTH]) });
  return byStep(outputs);
}

export async function ask({ facts: text, question: asked }) {
  const about = await data("babi");
  const numbers = new Map(about.vocabulary.map((word, number) => [word, number]));
  const questions = sentencesOf(asked);
  const { read, replaced } = reader(about.words.read_as);
  if (!sentencesOf(text).length) throw new Error("No facts; write sentences such as 'Mary went to the kitchen.'");
  if (sentencesOf(text).length > FACTS) throw new Error(`${sentencesOf(text).length} facts; the limit is ${FACTS}.`);
  if (questions.length !== 1) throw new Error(`The question must be one sentence such as 'Where is Mary?'; found ${questions.length}.`);
  const facts = sentencesOf(text).map(read);
  const question = read(questions[0]);
  check([...facts, question], numbers, about);
  const probabilities = (await answers([[...facts, question]], numbers)).map(([row]) => row);
  const answer = best(probabilities.at(-1));
  let importance = [1];
  if (facts.length > 1) {
    const without = (await answers(facts.map((_, left) => [...facts.filter((_, k) => k !== left), question]), numbers)).at(-1);
    importance = without.map((row) => Math.min(Math.max(probabilities.at(-1)[answer] - row[answer], 0), 1));
  }
  return {
    answer: about.answers[answer],
    unanswerable: probabilities.at(-1)[0],
    facts: facts.map((fact, k) => ({ text: fact, importance: importance[k] })),
    steps: stepPredictions(probabilities, about.answers),
    read_as: [...replaced],
  };
}
