// Time, for a journal without a running process: one stop a cycle.

import { advise, lookAt, state } from "./source.js";
import { h, moment } from "./dom.js";

const PLAY_MS = 700;

export async function slider(place) {
  place.hidden = false;
  place.replaceChildren(h("span", { class: "soft" }, "Reading the journal…"));
  let first = advise("boards/newest"); // beside the course: each takes its time
  first.catch(() => {});
  const course = await advise("courses");
  const cycles = course.cycles;
  place.replaceChildren();
  if (!cycles.length) {
    place.append(h("p", { class: "problem" }, "This journal has no cycle."));
    return;
  }
  const range = h("input", { type: "range", min: "0", max: String(cycles.length - 1), step: "1", value: String(cycles.length - 1), "aria-label": "Cycle of the journal" });
  const told = h("output");
  const play = h("button", { type: "button", onclick: start, "aria-pressed": "false" }, "▶");
  place.append(h("button", { type: "button", title: "one cycle back", onclick: () => move(-1) }, "◀"), range, h("button", { type: "button", title: "one cycle on", onclick: () => move(1) }, "▶|"), play, told, h("span", { class: "soft wide" }, state.mode.file || ""));
  let busy = null;
  let playing = 0;

  function label() {
    const [number, now, decisions] = cycles[Number(range.value)];
    told.textContent = `cycle ${number} · ${moment(now)} UTC · ${decisions} decided`;
    range.setAttribute("aria-valuetext", told.textContent);
  }

  /** One stop after another until it is the one that is wanted: who is asked goes on from what is at hand. */
  async function catchUp() {
    for (let shown = null; shown !== range.value;) {
      shown = range.value;
      const asked = first || advise(`boards/${cycles[Number(shown)][0]}`);
      first = null;
      await lookAt(asked, Number(shown) === cycles.length - 1 ? course.ended : null);
    }
  }

  function look() {
    label();
    busy ??= catchUp().catch((error) => { told.textContent = error.message; }).finally(() => { busy = null; });
    return busy;
  }

  function move(by) {
    range.value = String(Number(range.value) + by);
    return look();
  }

  function start() {
    playing = playing ? 0 : Date.now();
    play.setAttribute("aria-pressed", String(Boolean(playing)));
    const mine = playing;
    const step = async () => {
      if (!playing || playing !== mine || Number(range.value) >= cycles.length - 1) { if (playing === mine) start(); return; }
      await move(1);
      setTimeout(step, PLAY_MS);
    };
    if (playing) step();
  }

  range.addEventListener("input", label);
  range.addEventListener("change", look);
  await look();
}
