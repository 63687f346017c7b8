// The tabs. The module of a panel is loaded when its tab is first opened.

import { panels as loadPanels, reference } from "./backend.js";
import { h } from "./dom.js";
import { readAddress, writeAddress } from "./share.js";

const MODULES = {
  sudoku: () => import("./panels/sudoku.js"),
  babi: () => import("./panels/babi.js"),
  "pretty-clevr": () => import("./panels/pretty_clevr.js"),
  ages: () => import("./panels/ages.js"),
};

const main = document.querySelector("main");
const tablist = document.querySelector(".tabs");
const open = new Map();
let current = null;

async function start() {
  let panels;
  try {
    panels = await loadPanels();
  } catch (error) {
    main.replaceChildren(h("p", { class: "verdict bad", role: "alert" }, error.message));
    return;
  }
  if (!panels.length) {
    main.replaceChildren(h("p", { class: "verdict bad" }, "No weights are installed."));
    return;
  }
  main.replaceChildren();
  for (const info of panels) tablist.append(tab(info));
  tablist.addEventListener("keydown", moveAlong);
  // The event has the address that was asked for; a panel may have written another one since.
  const route = (event) => {
    const { task, input } = readAddress(event?.newURL);
    const info = panels.find((panel) => panel.task === task) ?? panels[0];
    show(info, info.task === task ? input : new URLSearchParams());
  };
  addEventListener("hashchange", route);
  route();
}

function tab(info) {
  return h(
    "button",
    {
      type: "button",
      role: "tab",
      id: `tab-${info.task}`,
      "aria-controls": `panel-${info.task}`,
      onclick: () => {
        show(info, null);
        writeAddress(info.task, open.get(info.task)?.shared?.() ?? {});
      },
    },
    info.title,
  );
}

function moveAlong(event) {
  const tabs = [...tablist.children];
  const at = tabs.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (to === undefined || at < 0) return;
  event.preventDefault();
  const next = tabs[(to + tabs.length) % tabs.length];
  next.focus();
  next.click();
}

// input: the parameters of the address, or null to leave the panel unchanged.
async function show(info, input) {
  if (current && current !== info.task) open.get(current)?.hide?.();
  current = info.task;
  for (const button of tablist.children) {
    const selected = button.id === `tab-${info.task}`;
    button.setAttribute("aria-selected", selected);
    button.tabIndex = selected ? 0 : -1;
  }
  let section = document.getElementById(`panel-${info.task}`);
  if (!section) {
    section = h("section", { role: "tabpanel", id: `panel-${info.task}`, "aria-labelledby": `tab-${info.task}` });
    main.append(section);
  }
  for (const other of main.children) other.hidden = other !== section;
  document.title = `rrn: ${info.title}`;
  let panel = open.get(info.task);
  if (!panel) {
    const { create } = await MODULES[info.task]();
    panel = await create(info, section);
    open.set(info.task, panel);
    await panel.load(input ?? new URLSearchParams());
  } else if (input) await panel.load(input);
}

if (reference) document.querySelector("footer p").append(" ", h("a", { href: reference }, "The API"));
start();
