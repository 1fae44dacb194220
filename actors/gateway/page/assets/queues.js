// The tree of queues as bars, over time, who borrows from whom, and who waits in which order.

import { advise, onChange, state } from "./source.js";
import { amount, amounts, clock, counted, h, jobLink, named, right, seconds, short, table } from "./dom.js";
import { ribbons } from "./lending.js";
import { lines } from "./plots.js";

const REST = 4; // a question is asked again after so many times as long as it took
const LEAST_MS = 1500;
let chosen = "cpu";

export function queues(place) {
  const choice = h("div", { class: "row", role: "group", "aria-label": "Resource" });
  const tree = h("div", { class: "scroll" });
  const lent = h("div");
  const time = h("div");
  const waiting = h("div", null, h("p", { class: "soft" }, "Waiting for the first answer…"));
  const asOf = h("p", { class: "soft" });
  const legend = h("div", { class: "legend" }, [["used", "allocated"], ["borrowed", "of that borrowed: beyond deserved"], ["guarantee", "guarantee"]].map(([kind, text]) =>
    h("span", null, h("i", { class: `key-${kind}` }), text)), h("span", null, "▏deserved"), h("span", null, "pale: beyond its capability"));
  place.append(choice, h("div", { class: "stack" },
    h("section", { class: "box stack" }, h("h2", null, "Queues"), tree, legend, asOf),
    h("section", { class: "box" }, h("h2", null, "Who borrows from whom"), lent),
    h("section", { class: "box" }, h("h2", null, "Over time"), time),
    h("section", { class: "box" }, h("h2", null, "Who waits, in the order in which they are tried"), waiting)));
  const asked = new AbortController();
  let standing = null;
  let course = null;
  let timer = 0;

  /** What was answered, and over it what the newest cycle said. */
  function current() {
    const found = { ...(standing ? standing.queues : {}) };
    for (const [name, said] of Object.entries(state.mode.live ? state.queues : {})) {
      found[name] = { parent: "root", weight: "", state: "", jobs_waiting: 0, pods_waiting: 0, ...found[name], ...said };
    }
    return withRoot(found);
  }

  function resources(listed) {
    const names = new Set(state.board ? state.board.resources : []);
    for (const queue of Object.values(listed)) for (const what of ["allocated", "deserved", "pending"]) Object.keys(queue[what] || {}).forEach((name) => names.add(name));
    return [...names];
  }

  function draw() {
    const listed = current();
    const names = resources(listed);
    if (!names.includes(chosen)) chosen = names[0] || "cpu";
    choice.replaceChildren(...names.map((name) => h("button", { type: "button", "aria-pressed": String(name === chosen), onclick: () => { chosen = name; draw(); } }, named(name))));
    tree.replaceChildren(treeTable(listed));
    lent.replaceChildren(standing ? ribbons(standing.lending[chosen] || [], chosen) : h("p", { class: "soft" }, "Waiting for the first answer…"));
    time.replaceChildren(overTime(course, parentsOf(listed)));
    asOf.textContent = standing ? `Deserved and waiting as of cycle ${standing.cycle} (${clock(standing.now)} UTC).` : "";
  }

  async function ask() {
    const began = performance.now();
    try {
      standing = await advise("standings", {}, asked.signal);
      waiting.replaceChildren(inOrder(standing));
      if (!course) course = await advise("measures", {}, asked.signal);
      draw();
    } catch (error) {
      if (error.name === "AbortError") return;
      waiting.replaceChildren(h("p", { class: "problem" }, error.message));
    }
    if (state.mode.live) timer = setTimeout(ask, Math.max(LEAST_MS, REST * (performance.now() - began)));
  }

  const stop = onChange((what) => {
    if (what.has("queues") || what.has("board")) draw();
    if (!state.mode.live && what.has("board")) ask();
  });
  draw();
  ask();
  return () => { stop(); asked.abort(); clearTimeout(timer); };
}

/** A queue without amounts of its own has what its children have; so has root, and every parent in a run whose plugins do not
 *  reckon with the tree. `own`: name -> amount by resource; `parents`: name -> name, root where nothing is known. */
export function withChildren(own, parents) {
  const names = new Set([...Object.keys(own), ...Object.values(parents), "root"]);
  const below = new Map();
  for (const name of names) {
    const parent = name === "root" ? "" : parents[name] || "root";
    below.set(parent, [...(below.get(parent) || []), name]);
  }
  const found = {};
  const sum = (name, depth) => {
    const children = depth < 40 ? (below.get(name) || []).map((child) => sum(child, depth + 1)) : [];
    const mine = own[name] || {};
    const total = {};
    if (Object.values(mine).some(Boolean)) Object.assign(total, mine);
    else for (const each of children) for (const [resource, value] of Object.entries(each)) total[resource] = (total[resource] || 0) + value;
    found[name] = total;
    return total;
  };
  sum("root", 0);
  return found;
}

const parentsOf = (listed) => Object.fromEntries(Object.entries(listed).map(([name, queue]) => [name, queue.parent || "root"]));

function withRoot(listed) {
  const allocated = withChildren(Object.fromEntries(Object.entries(listed).map(([name, queue]) => [name, queue.allocated || {}])), parentsOf(listed));
  return Object.fromEntries(Object.entries(listed).map(([name, queue]) => [name, { ...queue, allocated: allocated[name] || queue.allocated }]));
}

/** The same over time: `values` of a queue without records are the sums of those below it. */
function rolledUp(series, parents) {
  const own = Object.fromEntries(series.map((each) => [each.queue, Object.fromEntries(each.values.map((value, place) => [place, value]))]));
  const longest = Math.max(0, ...series.map((each) => each.values.length));
  return Object.entries(withChildren(own, parents)).filter(([, values]) => Object.keys(values).length)
    .map(([queue, values]) => ({ queue, values: Array.from({ length: longest }, (_, place) => values[place] || 0) })).sort((one, other) => (one.queue < other.queue ? -1 : 1));
}

function inTreeOrder(listed) {
  const below = new Map();
  for (const [name, queue] of Object.entries(listed).sort(([one], [other]) => (one < other ? -1 : 1))) {
    const above = queue.parent && queue.parent !== name && listed[queue.parent] ? queue.parent : "";
    below.set(above, [...(below.get(above) || []), name]);
  }
  const found = [];
  const walk = (name, depth) => {
    for (const child of below.get(name) || []) {
      found.push([child, depth]);
      if (depth < 40) walk(child, depth + 1);
    }
  };
  walk("", 0);
  return found;
}

function treeTable(listed) {
  const order = inTreeOrder(listed);
  if (!order.length) return h("p", { class: "soft" }, "Waiting for the first answer…");
  const of = (queue, what) => (queue[what] || {})[chosen] || 0;
  const row = state.board ? state.board.resources.indexOf(chosen) : -1;
  const whole = row >= 0 ? state.board.allocatable[row].reduce((all, each) => all + each, 0) : 0;
  const scale = Math.max(whole, ...order.map(([name]) => Math.max(of(listed[name], "allocated"), of(listed[name], "deserved")))) || 1;
  return table(["queue", h("th", { class: "n wide" }, "weight"), "", h("th", { class: "n" }, "allocated"), h("th", { class: "n wide" }, "deserved"), h("th", { class: "n wide" }, "guarantee"), h("th", { class: "n wide" }, "at most"), h("th", { class: "n" }, "waiting")],
    order.map(([name, depth]) => {
      const queue = listed[name];
      const told = [["weight", String(queue.weight)], ...["deserved", "guarantee", "at most"].map((text) => [text, of(queue, text === "at most" ? "capability" : text)]).filter(([, value]) => value).map(([text, value]) => [text, amount(chosen, value)])];
      const label = h("td", { class: "name" }, "\u2003".repeat(depth), named(name), queue.state && queue.state !== "Open" ? h("span", { class: "pill" }, queue.state) : null,
        h("div", { class: "narrow soft" }, told.map((each) => each.join(" ")).join(", ")));
      const wide = (text) => h("td", { class: "n wide" }, text);
      return [label, wide(String(queue.weight)), bar(queue, of, scale), right(Object.keys(queue.allocated || {}).length ? amount(chosen, of(queue, "allocated")) : "–"), wide(of(queue, "deserved") ? amount(chosen, of(queue, "deserved")) : "–"),
        wide(of(queue, "guarantee") ? amount(chosen, of(queue, "guarantee")) : "–"), wide(of(queue, "capability") ? amount(chosen, of(queue, "capability")) : "–"),
        right(queue.jobs_waiting ? `${counted(queue.jobs_waiting, "job")}` : "–")];
    }));
}

function bar(queue, of, scale) {
  const part = (value) => (100 * value) / scale;
  const [allocated, borrowed, deserved, guarantee, most] = ["allocated", "borrowed", "deserved", "guarantee", "capability"].map((what) => of(queue, what));
  return h("div", { class: "queue-bar", title: `allocated ${amount(chosen, allocated)}, deserved ${amount(chosen, deserved)}` },
    most && most < scale ? h("i", { class: "beyond", "left%": part(most), "width%": 100 - part(most) }) : null,
    h("i", { class: "allocated", "width%": part(allocated) }),
    borrowed ? h("i", { class: "borrowed", "left%": part(allocated - borrowed), "width%": part(borrowed) }) : null,
    guarantee ? h("i", { class: "guarantee", "width%": part(guarantee) }) : null,
    deserved ? h("i", { class: "deserved", "left%": Math.min(99.5, part(deserved)) }) : null);
}

function overTime(course, parents) {
  const heldOf = (found) => rolledUp(found.series.filter((each) => each.what === "held" && each.resource === chosen && each.queue), parents);
  if (!state.mode.live || !state.history.length) {
    if (!course) return h("p", { class: "soft" }, "Reading the journal…");
    const held = heldOf(course);
    const upTo = state.cycle !== null && state.board && state.board.now ? state.board.now - course.began : Infinity;
    return lines(held.map((each) => ({ name: each.queue, points: each.values.map((value, place) => [course.starts_s[place], value]).filter(([at]) => at <= upTo) })),
      { told: (value) => amount(chosen, value), when: (value) => seconds(value), label: `${chosen} held by queue over time` });
  }
  const history = state.history.map((each) => ({ at: each.at, allocated: withChildren(each.allocated, parents) }));
  const names = [...new Set(history.flatMap((each) => Object.keys(each.allocated)))].sort();
  const before = course ? heldOf(course) : [];
  const began = state.history[0].at;
  return lines(names.map((name) => {
    const recorded = before.find((each) => each.queue === name);
    const old = recorded ? recorded.values.map((value, place) => [course.began + course.starts_s[place], value]).filter(([at]) => at < began) : [];
    const said = history.map((each) => [each.at, (each.allocated[name] || {})[chosen] || 0]);
    return { name, points: [...old, ...said, [Math.max(Date.now() / 1000, said[said.length - 1][0]), said[said.length - 1][1]]] };
  }), { told: (value) => amount(chosen, value), when: clock, label: `${chosen} allocated by queue over time` });
}

function inOrder(standing) {
  if (!standing.waiting.length) return h("p", { class: "soft" }, "No job waits.");
  const shown = standing.waiting.slice(0, 200);
  const names = new Map(standing.waiting.map((job) => [job.job, job.made_for]));
  const classes = Object.entries(standing.classes).filter(([, number]) => number).map(([name, number]) => h("span", { class: "pill" }, `${name} ${number}`));
  return h("div", { class: "stack" }, h("div", { class: "row" }, classes),
    table(["#", "job", "queue", "waits for", h("th", { class: "wide" }, "after"), h("th", { class: "wide" }, "asks")], shown.map((job) => [
      right(job.position === null ? "–" : String(job.position)), h("td", { class: "name" }, jobLink(job.made_for)), named(job.queue),
      h("td", { class: "wrap" }, h("span", { class: "pill", title: job.wait.helps }, job.reason), " ", named(job.because)),
      h("td", { class: "wide name" }, job.before_it ? [named(names.get(job.before_it.job) || job.before_it.job), h("div", { class: "soft" }, job.before_it.by)] : "–"),
      h("td", { class: "wide" }, amounts(job.asks))])),
    standing.waiting.length > shown.length ? h("p", { class: "soft" }, `and ${short(standing.waiting.length - shown.length)} more`) : null);
}
