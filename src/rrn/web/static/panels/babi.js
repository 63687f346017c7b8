// bAbI: a story and a question; the answer after each step, and the facts shaded by how much they mattered.

import { babi as backend } from "../backend.js";
import { h, labelled, percent } from "../dom.js";
import { Latest } from "../latest.js";
import { about, stepsTable, verdict } from "../parts.js";
import { Player } from "../player.js";
import { shareButton, writeAddress } from "../share.js";

const MATTERS = 0.005;
const NOT_TOLD = "not in the story"; // the answer where the facts hold none
const DOUBT = 0.01; // the probability of that from which on it is said beside another answer
const FIRST_TASK = "2"; // two supporting facts: the answer needs one fact after another
const NUMBERS = 1000;

export async function create(info, section) {
  const latest = new Latest();
  const told = verdict();
  const player = new Player((step) => table.mark(step), 1);
  const place = h("div", { class: "results" });
  const facts = h("textarea", { rows: 10, maxlength: 4000 });
  const question = h("input", { type: "text", maxlength: 200, autocomplete: "off", onkeydown: (event) => event.key === "Enter" && ask() });
  const choice = h("select", { onchange: take });
  const askButton = h("button", { type: "button", class: "primary", onclick: ask }, "Ask");
  const words = h("details", { class: "words", ontoggle: listWords }, h("summary", {}, "Words it knows"));
  let number = 0;
  let examples = [];
  let table = null;

  section.append(
    about(info),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "board" },
        labelled("Example", choice),
        labelled("Facts, oldest first", facts),
        labelled("Question", question),
        words,
        h("div", { class: "buttons" }, askButton, h("button", { type: "button", onclick: surprise }, "Surprise me"), shareButton()),
      ),
      h("div", { class: "side" }, told.element, player.element, place),
    ),
  );
  await readExamples();

  async function readExamples() {
    examples = await backend.examples(number);
    const chosen = choice.value || FIRST_TASK;
    choice.replaceChildren(...examples.map((example) => h("option", { value: `${example.task}` }, `${example.task}. ${example.title}`)));
    choice.value = chosen;
  }

  function chosen() {
    return examples.find((example) => `${example.task}` === choice.value);
  }

  function take() {
    facts.value = chosen().facts;
    question.value = chosen().question;
    ask();
  }

  async function surprise() {
    number = Math.floor(Math.random() * NUMBERS);
    await readExamples();
    choice.value = examples[Math.floor(Math.random() * examples.length)].task;
    take();
  }

  async function listWords() {
    if (!words.open || words.childElementCount > 1) return;
    try {
      const { groups, read_as } = await backend.words();
      words.append(
        h("dl", {}, groups.flatMap(({ title, words: list }) => [h("dt", {}, title), h("dd", {}, list.join(", "))])),
        h("p", { class: "hint" }, "Other words that are read as one of these: ", read_as.map(([from, to]) => `${from} (${to})`).join(", "), "."),
      );
    } catch (error) {
      words.append(h("p", {}, error.message));
    }
  }

  async function ask() {
    player.clear();
    place.replaceChildren();
    writeAddress(info.task, shared());
    told.plain("Thinking …");
    try {
      const asked = { facts: facts.value, question: question.value };
      const found = await latest.run((signal) => backend.ask(asked, signal));
      if (!found) return;
      const example = chosen();
      const known = example && example.facts === facts.value && example.question === question.value ? example.answer : null;
      table = stepsTable(found.steps, known, (step) => {
        player.pause();
        player.go(step);
      });
      place.replaceChildren(h("h2", {}, "The facts, shaded by how much they mattered"), factList(found.facts), table.element);
      const read = found.read_as.length ? ` Read: ${found.read_as.map(([word, meant]) => `“${word}” as “${meant}”`).join(", ")}.` : "";
      const doubt = found.answer !== NOT_TOLD && found.not_told >= DOUBT ? ` That the story does not say is ${percent(found.not_told)} probable.` : "";
      const more = `${doubt}${read}`;
      if (known === found.answer) told.good(found.answer, `Right.${more}`);
      else if (known !== null) told.bad(found.answer, `Wrong: it is ${known}.${more}`);
      else if (found.answer === NOT_TOLD) told.plain(found.answer, `The facts do not say, the network holds: ${percent(found.not_told)}.${more}`);
      else told.plain(found.answer, `The network's answer.${more}`);
      player.load(found.steps.length);
    } catch (error) {
      told.bad("Not answered", error.message);
    }
  }

  function factList(list) {
    const items = list.map((fact) => {
      const matters = fact.mattered >= MATTERS;
      const item = h("li", { class: matters ? "matters" : "" }, h("span", {}, fact.text), matters && h("span", { class: "share-of" }, percent(fact.mattered)));
      item.style.setProperty("--mattered", fact.mattered);
      return item;
    });
    return h("div", {}, h("ol", { class: "facts" }, items), h("p", { class: "hint" }, "Beside a fact: how far the answer's probability falls without it."));
  }

  const shared = () => (facts.value ? { facts: facts.value, question: question.value } : {});

  return {
    shared,
    hide: () => player.pause(),
    load: async (input) => {
      if (input.get("facts") === null) {
        if (!facts.value) take();
        return;
      }
      facts.value = input.get("facts");
      question.value = input.get("question") ?? "";
      await ask();
    },
  };
}
