// The address contains the panel and its input: #sudoku?puzzle=…

import { h } from "./dom.js";

export function readAddress(url = location.href) {
  const [task, query = ""] = new URL(url).hash.slice(1).split(/\?(.*)/s);
  return { task, input: new URLSearchParams(query) };
}

// A panel that was left while it was loading does not write its address.
export function writeAddress(task, input = {}) {
  if (document.getElementById(`panel-${task}`)?.hidden) return;
  const query = new URLSearchParams(input).toString();
  history.replaceState(null, "", `#${task}${query ? `?${query}` : ""}`);
}

export function shareButton() {
  const note = h("span", { class: "note", role: "status" });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      note.textContent = "Copied.";
    } catch {
      note.textContent = "Copy the address of this page.";
    }
    setTimeout(() => (note.textContent = ""), 4000);
  };
  return h("span", { class: "share" }, h("button", { type: "button", onclick: copy }, "Copy link"), note);
}
