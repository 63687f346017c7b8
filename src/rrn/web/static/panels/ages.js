// Ages: facts in words, and the predicted age after each step.

import { ages as backend } from "../backend.js";
import { barChart } from "../chart.js";
import { counted, h, labelled } from "../dom.js";
import { Latest } from "../latest.js";
import { about, stepsTable, verdict } from "../parts.js";
import { Player } from "../player.js";
import { shareButton, writeAddress } from "../share.js";

const AGES = 100;
const NAMES = ["Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal"];

// A random story about five to eight people.
function randomStory() {
  const count = 5 + Math.floor(Math.random() * (NAMES.length - 4));
  const people = NAMES.slice(0, count).map((name) => ({ name, age: Math.floor(Math.random() * AGES) }));
  const facts = people.slice(1).map((person, k) => {
    const other = people[Math.random() < 0.8 ? k : Math.floor(Math.random() * (k + 1))];
    const gap = person.age - other.age;
    if (!gap) return `${person.name} is as old as ${other.name}.`;
    return `${person.name} is ${counted(Math.abs(gap), "year")} ${gap > 0 ? "older" : "younger"} than ${other.name}.`;
  });
  return `${people[0].name} is ${people[0].age}. ${facts.join(" ")} How old is ${people.at(-1).name}?`;
}

export async function create(info, section) {
  const latest = new Latest();
  const status = verdict();
  const player = new Player(showStep, 1);
  const results = h("div", { class: "results" });
  const story = h("textarea", { rows: 7, maxlength: 4000 });
  const choice = h("select", {
    onchange: () => {
      story.value = choice.value;
      ask();
    },
  });
  const askButton = h("button", { type: "button", class: "primary", onclick: ask }, "Ask");
  let found = null;
  let table = null;
  let chart = null;

  section.append(
    about(info),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "board" },
        labelled("Example", choice),
        labelled("Facts and a question", story),
        h("p", { class: "hint" }, "Facts: Ann is 20. Ann is 4 years older than Bob. Bob is as old as Cleo. Question: How old is Cleo? At most eight people, ages from 0 to 99."),
        h("div", { class: "buttons" }, askButton, h("button", { type: "button", onclick: surprise }, "Surprise me"), shareButton()),
      ),
      h("div", { class: "side" }, status.element, player.element, results),
    ),
  );
  const examples = await backend.examples();
  for (const example of examples) choice.append(h("option", { value: example.story }, example.name));

  function surprise() {
    story.value = randomStory();
    choice.value = story.value;
    ask();
  }

  function showStep(step) {
    table.mark(step);
    chart.show(found.distribution[step - 1], found.truth);
  }

  async function ask() {
    player.clear();
    results.replaceChildren();
    writeAddress(info.task, shared());
    status.plain("Running …");
    try {
      found = await latest.run((signal) => backend.ask({ story: story.value }, signal));
      if (!found) return;
      const choose = (step) => {
        player.pause();
        player.go(step);
      };
      table = stepsTable(found.steps, `${found.truth}`, choose);
      chart = barChart(AGES, `Probability of each age of ${found.person}, in percent`, "age");
      results.replaceChildren(h("h2", {}, `How old is ${found.person}? Probability in %`), chart.element, table.element);
      const far = `${counted(found.differences, "difference")} from the given age.`;
      if (found.answer === found.truth) status.good(`${found.person} is ${found.answer}`, `Right, ${far}`);
      else status.bad(`${found.person} is ${found.answer}`, `Wrong: the age is ${found.truth}, ${far}`);
      player.load(found.steps.length);
    } catch (error) {
      status.bad("Not answered", error.message);
    }
  }

  const shared = () => (story.value ? { story: story.value } : {});

  return {
    shared,
    hide: () => player.pause(),
    load: async (input) => {
      const text = input.get("story");
      if (text === null && story.value) return;
      story.value = text ?? examples[0].story;
      choice.value = story.value;
      await ask();
    },
  };
}
