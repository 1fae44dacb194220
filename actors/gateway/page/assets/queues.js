// The tree of queues as bars, over time, who borrows from whom, and who waits in which order.

import { advise, onChange, state } from "./source.js";
import { amount, amounts, clock, counted, h, jobLink, jobOf, named, right, s, seconds, short, table } from "./dom.js";
import { COLOURS, lines } from "./plots.js";

const REST = 4; // a question is asked again after so many times as long as it took
const LEAST_MS = 1500;
let chosen = "cpu";

export function queues(place) {
  const choice = h("div", { class: "row", role: "group", "aria-label": "Resource" });
  const tree = h("div", { class: "scroll" });
  const lent = h("div");
  const time = h("div");
  const waiting = h("div");
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
    return found;
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
    lent.replaceChildren(lending(listed));
    time.replaceChildren(overTime(course));
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
    if (what.has("cycles") || what.has("board")) draw();
    if (!state.mode.live && what.has("board")) ask();
  });
  draw();
  ask();
  return () => { stop(); asked.abort(); clearTimeout(timer); };
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
      const label = h("td", { class: "name" }, "\u2003".repeat(depth), named(name), queue.state && queue.state !== "Open" ? h("span", { class: "pill" }, queue.state) : null);
      const wide = (text) => h("td", { class: "n wide" }, text);
      return [label, wide(String(queue.weight)), bar(queue, of, scale), right(amount(chosen, of(queue, "allocated"))), wide(of(queue, "deserved") ? amount(chosen, of(queue, "deserved")) : "–"),
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

/** Ribbons from queues that use less than they deserve to those that have more, in proportion. */
function lending(listed) {
  const of = (queue, what) => (queue[what] || {})[chosen] || 0;
  const takers = Object.entries(listed).map(([name, queue]) => [name, of(queue, "borrowed")]).filter(([, value]) => value > 0);
  if (!takers.length) return h("p", { class: "soft" }, `Nobody has more ${chosen} than deserved.`);
  const taken = takers.reduce((all, [, value]) => all + value, 0);
  const givers = Object.entries(listed).map(([name, queue]) => [name, of(queue, "deserved") - of(queue, "allocated")]).filter(([, value]) => value > 0);
  const given = givers.reduce((all, [, value]) => all + value, 0);
  if (given < taken) givers.push(["nobody: free", taken - given]);
  const all = Math.max(given, taken);
  const high = Math.max(70, 26 * Math.max(takers.length, givers.length));
  const drawn = [];
  let y = 0;
  const placed = (list, total) => {
    y = 0;
    return list.map(([name, value]) => {
      const tall = (value / total) * (high - 8);
      y += tall;
      return { name, value, top: y - tall, tall };
    });
  };
  const left = placed(givers, all);
  const rightSide = placed(takers, taken);
  rightSide.forEach((taker) => { taker.used = 0; });
  left.forEach((giver, number) => {
    let from = giver.top;
    rightSide.forEach((taker) => {
      const thick = giver.tall * (taker.value / taken);
      const into = taker.tall * (giver.value / all);
      const to = taker.top + taker.used;
      taker.used += into;
      drawn.push(s("path", { d: `M200,${from}C360,${from} 360,${to} 520,${to}L520,${to + into}C360,${to + into} 360,${from + thick} 200,${from + thick}Z`, fill: COLOURS[number % COLOURS.length], "fill-opacity": 0.35 },
        s("title", null, `${giver.name} → ${taker.name}`)));
      from += thick;
    });
  });
  const label = (side, x, anchor) => side.map((each) => s("text", { x, y: each.top + each.tall / 2 + 4, "text-anchor": anchor, class: "strong" }, `${each.name}  ${amount(chosen, each.value)}`));
  return h("div", { class: "scroll" }, s("svg", { viewBox: `0 0 720 ${high}`, role: "img", "aria-label": "Lenders on the left, borrowers on the right" }, drawn, label(left, 194, "end"), label(rightSide, 526, "start")),
    h("p", { class: "soft" }, `Left: ${chosen} that queues deserve and do not use. Right: who has more than deserved. Nothing says whose is whose, so the ribbons are in proportion.`));
}

function overTime(course) {
  if (!state.mode.live || state.history.length < 2) {
    if (!course) return h("p", { class: "soft" }, "Reading the journal…");
    const held = course.series.filter((each) => each.what === "held" && each.resource === chosen && each.queue);
    const upTo = state.cycle !== null && state.board && state.board.now ? state.board.now - course.began : Infinity;
    return lines(held.map((each) => ({ name: each.queue, points: each.values.map((value, place) => [course.starts_s[place], value]).filter(([at]) => at <= upTo) })),
      { told: (value) => amount(chosen, value), when: (value) => seconds(value), label: `${chosen} held by queue over time` });
  }
  const names = [...new Set(state.history.flatMap((each) => Object.keys(each.allocated)))].sort();
  const before = course ? course.series.filter((each) => each.what === "held" && each.resource === chosen && each.queue) : [];
  const began = state.history[0].at;
  return lines(names.map((name) => {
    const recorded = before.find((each) => each.queue === name);
    const old = recorded ? recorded.values.map((value, place) => [course.began + course.starts_s[place], value]).filter(([at]) => at < began) : [];
    return { name, points: [...old, ...state.history.map((each) => [each.at, (each.allocated[name] || {})[chosen] || 0])] };
  }), { told: (value) => amount(chosen, value), when: clock, label: `${chosen} allocated by queue over time` });
}

function inOrder(standing) {
  if (!standing.waiting.length) return h("p", { class: "soft" }, "No job waits.");
  const shown = standing.waiting.slice(0, 200);
  const classes = Object.entries(standing.classes).filter(([, number]) => number).map(([name, number]) => h("span", { class: "pill" }, `${name} ${number}`));
  return h("div", { class: "stack" }, h("div", { class: "row" }, classes),
    table(["#", "job", "queue", "waits for", h("th", { class: "wide" }, "after"), h("th", { class: "wide" }, "asks")], shown.map((job) => [
      right(job.position === null ? "–" : String(job.position)), h("td", { class: "name" }, jobLink(jobOf(job.job))), named(job.queue),
      h("td", { class: "wrap" }, h("span", { class: "pill" }, job.class), " ", named(job.because)),
      h("td", { class: "wide name" }, job.before_it ? [named(jobOf(job.before_it.job || "")), h("div", { class: "soft" }, job.before_it.plugin || "")] : "–"),
      h("td", { class: "wide" }, amounts(job.asks))])),
    standing.waiting.length > shown.length ? h("p", { class: "soft" }, `and ${short(standing.waiting.length - shown.length)} more`) : null);
}
