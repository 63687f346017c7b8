// Ages: reads facts and runs the network.

import { best, stepPredictions, byStep, integers, run } from "./network.js";

const AGES = 100;
const PEOPLE = 8;
const NAME = "([\\p{L}\\p{N}_'’-]{1,40})";
const AGE = new RegExp(`^${NAME} is (\\d{1,9})(?: years? old)?$`, "iu");
const DIFFERENCE = new RegExp(`^${NAME} is (\\d{1,9}) (?:years? )?(older|younger) than ${NAME}$`, "iu");
const SAME = new RegExp(`^${NAME} is (?:as old as|the same age as) ${NAME}$`, "iu");
const QUESTION = new RegExp(`^how old is ${NAME}$`, "iu");
const FORMS = "'Ann is 20', 'Ann is 4 older than Bob', 'Ann is as old as Bob'";

function read(text) {
  const names = [];
  const facts = [];
  const person = (name) => {
    const known = names.findIndex((other) => other.toLowerCase() === name.toLowerCase());
    if (known >= 0) return known;
    if (names.length === PEOPLE) throw new Error(`'${name}' is one too many; the network knows stories of at most ${PEOPLE} people`);
    return names.push(name) - 1;
  };
  let asked = null;
  for (const sentence of text.split(/[.?!\n;]+/).map((part) => part.trim()).filter(Boolean)) {
    let match;
    if ((match = sentence.match(QUESTION))) asked = match[1];
    else if ((match = sentence.match(AGE))) {
      const known = person(match[1]);
      facts.push([known, known, 0, Number(match[2])]);
    } else if ((match = sentence.match(DIFFERENCE))) {
      facts.push([person(match[1]), person(match[4]), match[3].toLowerCase() === "older" ? 1 : -1, Number(match[2])]);
    } else if ((match = sentence.match(SAME))) facts.push([person(match[1]), person(match[2]), 1, 0]);
    else throw new Error(`cannot read '${sentence}'; facts look like ${FORMS}, questions like 'How old is Ann?'`);
  }
  if (asked === null) throw new Error("no question: end with one such as 'How old is Ann?'");
  if (!names.some((name) => name.toLowerCase() === asked.toLowerCase())) throw new Error(`'${asked}' is in no fact; the facts name ${names.join(", ") || "nobody"}`);
  return { names, facts, asked: person(asked) };
}

// The age of each person, and the number of differences between it and the given age.
function deduce(facts, names) {
  const anchors = facts.filter((fact) => fact[2] === 0);
  if (anchors.length !== 1) throw new Error(`expected exactly one fact that states an age ('Ann is 20'), got ${anchors.length}`);
  const ages = new Map([[anchors[0][0], anchors[0][3]]]);
  const far = new Map([[anchors[0][0], 0]]);
  for (const person of ages.keys()) {
    for (const [a, b, sign, difference] of facts) {
      if (!sign || (person !== a && person !== b)) continue;
      const other = person === a ? b : a;
      const age = person === a ? ages.get(a) - sign * difference : ages.get(b) + sign * difference;
      if (!ages.has(other)) {
        ages.set(other, age);
        far.set(other, far.get(person) + 1);
      } else if (ages.get(other) !== age) throw new Error(`the facts contradict each other: ${names[other]} is ${ages.get(other)} and ${age}`);
    }
  }
  const unsettled = names.find((_, person) => !ages.has(person));
  if (unsettled) throw new Error(`nothing connects ${unsettled} to ${names[anchors[0][0]]}, whose age is given`);
  for (const [person, age] of ages) if (age < 0 || age >= AGES) throw new Error(`${names[person]} would be ${age}; ages go from 0 to ${AGES - 1}`);
  if (facts.length > names.length) throw new Error(`${facts.length} facts about ${names.length} people: one is redundant; leave it out`);
  return { ages, far };
}

// The network was trained on eight facts: shorter stories are padded with invented people, as in Python.
function pad(facts, ages) {
  while (ages.size < PEOPLE) {
    const person = ages.size;
    const friend = (3 * person) % person;
    const age = (47 * person + 13) % AGES;
    const difference = age - ages.get(friend);
    facts.push([person, friend, difference >= 0 ? 1 : -1, Math.abs(difference)]);
    ages.set(person, age);
  }
}

export async function ask({ story }) {
  const { names, facts, asked } = read(story);
  const { ages, far } = deduce(facts, names);
  pad(facts, ages);
  const { outputs } = await run("ages", { facts: integers(facts.flat(), [1, PEOPLE, 4]), asked: integers([asked], [1]) });
  const probabilities = byStep(outputs).map(([row]) => row);
  return {
    person: names[asked],
    answer: best(probabilities.at(-1)),
    truth: ages.get(asked),
    differences: far.get(asked),
    steps: stepPredictions(probabilities, Array.from({ length: AGES }, (_, age) => `${age}`)),
    distribution: probabilities,
  };
}
