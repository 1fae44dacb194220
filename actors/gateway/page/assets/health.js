// How the process fares: cycle times, mailboxes, binds in flight, the journal, what went wrong.

import { advise, ask, onChange, state } from "./source.js";
import { clock, counted, h, named, right, seconds, short, table } from "./dom.js";
import { lines } from "./plots.js";

const METRICS_MS = 2000;
const COURSE_LEAST_MS = 15000;
const REST = 10;
const KEPT = 300;

export function health(place) {
  const tiles = h("div", { class: "tiles" });
  const times = h("div");
  const flight = h("div");
  const boxes = h("div");
  const faults = h("div");
  const journal = h("div");
  const events = h("div");
  const section = (title, ...body) => h("section", { class: "box stack" }, h("h2", null, title), body);
  place.append(tiles, h("div", { class: "stack" }, state.mode.live ? [section("Cycle times", times), section("In flight", flight), section("Actors and their mailboxes", boxes), section("Faults of a storm", faults)] : null, section("Journal", journal), section("Actors and configurations: what befell them", events)));
  const stopper = new AbortController();
  const timers = new Set();
  const samples = [];

  function drawCycles() {
    const told = state.cycles;
    times.replaceChildren(lines([["whole", "total_s"], ["open", "open_s"], ["close", "close_s"]].map(([name, key]) => ({ name, points: told.map((each) => [each.cycle, each[key]]) })), { told: seconds, when: (at) => `cycle ${Math.round(at)}`, label: "Cycle times" }));
    const board = state.board;
    const newest = told[told.length - 1];
    tiles.replaceChildren(...[["cycle", newest ? newest.cycle.toLocaleString("en") : "–"], ["newest took", newest ? seconds(newest.total_s) : "–"], ["binds in flight", board ? short(board.binding) : "–"], ["evictions in flight", board ? short(board.evicting) : "–"],
      ["pods of jobs", board ? short(Object.values(board.pods).reduce((all, each) => all + each, 0)) : "–"]].map(([name, value]) => h("div", { class: "tile box" }, h("small", null, name), h("b", null, value))));
  }

  async function readMetrics() {
    try {
      const answer = await fetch("/metrics", { signal: stopper.signal });
      const found = parsed(await answer.text());
      samples.push({ at: Date.now() / 1000, binding: state.board ? state.board.binding : 0, evicting: state.board ? state.board.evicting : 0 });
      samples.splice(0, Math.max(0, samples.length - KEPT));
      flight.replaceChildren(lines([["binds", "binding"], ["evictions", "evicting"]].map(([name, key]) => ({ name, points: samples.map((each) => [each.at, each[key]]) })), { high: 110, told: short, whole: true, when: clock, label: "Decisions in flight" }));
      boxes.replaceChildren(mailboxes(found));
      faults.replaceChildren(struck(found.get("pumice_faults_total")));
    } catch (error) {
      if (error.name === "AbortError") return;
      boxes.replaceChildren(h("p", { class: "problem" }, error.message));
    }
    later(readMetrics, METRICS_MS);
  }

  const sizes = [];
  async function readCourse() {
    const began = performance.now();
    try {
      const found = await advise("courses", {}, stopper.signal);
      sizes.push([Date.now() / 1000, found.records]);
      journal.replaceChildren(...about(found, sizes));
      events.replaceChildren(found.events.length ? table(["at", "what"], found.events.slice(-120).reverse().map((each) => [clock(each.at), h("td", { class: /crash|lost|refused/.test(each.text) ? "wrap no" : "wrap" }, named(each.text))])) : h("p", { class: "soft" }, "Nothing."));
    } catch (error) {
      if (error.name === "AbortError") return;
      journal.replaceChildren(h("p", { class: "problem" }, error.message));
    }
    if (state.mode.live) later(readCourse, Math.max(COURSE_LEAST_MS, REST * (performance.now() - began)));
  }

  function later(work, wait) {
    const timer = setTimeout(() => { timers.delete(timer); work(); }, wait);
    timers.add(timer);
  }

  const stop = onChange((what) => { if (state.mode.live && (what.has("cycles") || what.has("board"))) drawCycles(); });
  if (state.mode.live) { drawCycles(); readMetrics(); }
  readCourse();
  return () => { stop(); stopper.abort(); timers.forEach(clearTimeout); };
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;

/** Prometheus' text: name -> [[labels, value]…]. */
export function parsed(text) {
  const found = new Map();
  for (const line of text.split("\n")) {
    const match = line.startsWith("#") ? null : LINE.exec(line);
    if (!match) continue;
    const labels = Object.fromEntries([...(match[2] || "").matchAll(/(\w+)="((?:\\.|[^"\\])*)"/g)].map(([, name, value]) => [name, value.replace(/\\(.)/g, (_, letter) => (letter === "n" ? "\n" : letter))]));
    if (!found.has(match[1])) found.set(match[1], []);
    found.get(match[1]).push([labels, Number(match[3])]);
  }
  return found;
}

function mailboxes(found) {
  const waiting = [...found.entries()].filter(([name]) => /mailbox/.test(name));
  const actors = new Map();
  for (const [name, rows] of waiting) {
    for (const [labels, value] of rows) {
      const actor = labels.actor || labels.mailbox || labels.name || Object.values(labels)[0] || "";
      if (!actors.has(actor)) actors.set(actor, {});
      actors.get(actor)[name.replace(/^pumice_(actor_)?mailbox_?/, "").replaceAll("_", " ") || "waiting"] = value;
    }
  }
  const columns = [...new Set([...actors.values()].flatMap((each) => Object.keys(each)))];
  const longest = (found.get("pumice_request_longest_seconds") || [])[0];
  return h("div", { class: "stack" }, longest ? h("p", { class: "soft" }, `The request that held the event loop longest: ${seconds(longest[1])} `, named(longest[0].request || "")) : null,
    table(["actor", ...columns.map((name) => h("th", { class: "n" }, name))], [...actors].sort(([one], [other]) => (one < other ? -1 : 1)).map(([actor, values]) => [named(actor), ...columns.map((name) => right(values[name] === undefined ? "" : short(values[name])))])));
}

/** Faults by kind, most frequent first; `rows` is undefined in a run without faults. */
function struck(rows) {
  if (!rows) return h("p", { class: "soft" }, "This run has no faults (", h("code", null, "pumice run --faults"), " does).");
  const all = rows.reduce((sum, [, number]) => sum + number, 0);
  const listed = [...rows].sort(([, one], [, other]) => other - one);
  const most = Math.max(1, ...rows.map(([, number]) => number));
  return h("div", { class: "stack" }, h("p", null, `${counted(all, "fault")} so far`), listed.length ? table(["kind", h("th", { class: "n" }, "times"), ""], listed.map(([labels, number]) =>
    [named(labels.kind), right(short(number)), h("td", { class: "bars" }, h("div", { class: "bar" }, h("i", { class: "releasing", "width%": (100 * number) / most })))])) : null);
}

function about(found, sizes) {
  const outcomes = [...Object.entries(found.outcomes), ...Object.entries(found.crashes).map(([actor, number]) => [`${actor} crashed`, number])];
  const last = found.cycles[found.cycles.length - 1];
  return [
    h("p", null, `${counted(found.records, "record")}, ${short(found.bytes / 2 ** 20)} MiB, ${counted(found.cycles.length, "cycle")}`, last ? `, the newest ${last[0]} at ${clock(last[1])} UTC` : ""),
    sizes.length > 2 ? lines([{ name: "records", points: sizes }], { high: 110, told: short, whole: true, when: clock, label: "Journal growth" }) : null,
    h("div", { class: "row" }, outcomes.map(([name, number]) => h("span", { class: /Refused|TimedOut|crashed/.test(name) ? "pill no" : "pill" }, `${name} ${number.toLocaleString("en")}`))),
    lines([{ name: "decisions by cycle", points: thinned(found.cycles).map(([, at, decisions]) => [at, decisions]) }], { high: 120, told: short, whole: true, when: clock, label: "Decisions over time" }),
  ].filter(Boolean);
}

function thinned(cycles) {
  const step = Math.ceil(cycles.length / 1500);
  return step > 1 ? cycles.filter((_, number) => number % step === 0) : cycles;
}
