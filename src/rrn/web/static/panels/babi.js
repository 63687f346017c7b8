// bAbI: a story and a question; the answer after each step, and the facts shaded by importance.

import { babi as backend } from "../backend.js";
import { h, labelled, percent } from "../dom.js";
import { Latest } from "../latest.js";
import { about, stepsTable, verdict } from "../parts.js";
import { Player } from "../player.js";
import { shareButton, writeAddress } from "../share.js";

const IMPORTANT = 0.005;
const UNANSWERABLE = "not in the story"; // the answer if the facts do not contain one
const DOUBT = 0.01; // from this probability on, it is shown beside another answer
const FIRST_TASK = "2"; // two supporting facts
const NUMBERS = 1000;

export async function create(info, section) {
  const latest = new Latest();
  const status = verdict();
  const player = new Player((step) => table.mark(step), 1);
  const results = h("div", { class: "results" });
  const facts = h("textarea", { rows: 10, maxlength: 4000 });
  const question = h("input", { type: "text", maxlength: 200, autocomplete: "off", onkeydown: (event) => event.key === "Enter" && ask() });
  const choice = h("select", { onchange: take });
  const askButton = h("button", { type: "button", class: "primary", onclick: ask }, "Ask");
  const words = h("details", { class: "words", ontoggle: listWords }, h("summary", {}, "Vocabulary"));
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
      h("div", { class: "side" }, status.element, player.element, results),
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
        h("p", { class: "hint" }, "Replaced by one of these: ", read_as.map(([from, to]) => `${from} (${to})`).join(", "), "."),
      );
    } catch (error) {
      words.append(h("p", {}, error.message));
    }
  }

  async function ask() {
    player.clear();
    results.replaceChildren();
    writeAddress(info.task, shared());
    status.plain("Running …");
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
      results.replaceChildren(h("h2", {}, "Facts, shaded by importance"), factList(found.facts), table.element);
      const read = found.read_as.length ? ` Read: ${found.read_as.map(([word, meant]) => `“${word}” as “${meant}”`).join(", ")}.` : "";
      const doubt = found.answer !== UNANSWERABLE && found.unanswerable >= DOUBT ? ` Probability that it is not in the story: ${percent(found.unanswerable)}.` : "";
      const more = `${doubt}${read}`;
      if (known === found.answer) status.good(found.answer, `Right.${more}`);
      else if (known !== null) status.bad(found.answer, `Wrong: it is ${known}.${more}`);
      else if (found.answer === UNANSWERABLE) status.plain(found.answer, `Probability that the story does not contain the answer: ${percent(found.unanswerable)}.${more}`);
      else status.plain(found.answer, `Answer of the network.${more}`);
      player.load(found.steps.length);
    } catch (error) {
      status.bad("Not answered", error.message);
    }
  }

  function factList(list) {
    const items = list.map((fact) => {
      const important = fact.importance >= IMPORTANT;
      const item = h("li", { class: important ? "important" : "" }, h("span", {}, fact.text), important && h("span", { class: "share-of" }, percent(fact.importance)));
      item.style.setProperty("--importance", fact.importance);
      return item;
    });
    return h("div", {}, h("ol", { class: "facts" }, items), h("p", { class: "hint" }, "Importance: decrease of the answer's probability without the fact."));
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
