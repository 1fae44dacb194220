// One cycle: its actions and plugins with their times, what it decided, who was asked in which order, and for any task
// every node with what each filter and scorer said.

import { advise, onChange, state } from "./source.js";
import { amount, clock, counted, h, jobLink, jobOf, link, named, right, seconds, short, table } from "./dom.js";
import { bars } from "./plots.js";

const MOST = 400;
const PARTS = [["open", "--promised"], ["actions", "--used"], ["close", "--releasing"], ["else", "--soft"]];

export function cycle(place, given) {
  const [asked = "", ...rest] = given.split("/");
  const task = rest.join("/");
  const named_ = /^\d+$/.test(asked) ? asked : state.cycle !== null ? String(state.cycle) : "newest";
  const strip = h("div", { class: "scroll" });
  const body = h("div", { class: "stack" });
  const number = h("input", { type: "number", min: "1", "aria-label": "Cycle", size: 8 });
  const pod = h("input", { value: task, placeholder: "namespace/pod", "aria-label": "Task", size: 30 });
  const step = (by) => () => shown && go(shown.cycle + by);
  place.append(...[h("div", { class: "row" },
    h("button", { type: "button", onclick: step(-1), title: "left arrow" }, "◀ previous"), h("form", { onsubmit: (event) => { event.preventDefault(); go(number.value); } }, number),
    h("button", { type: "button", onclick: step(1), title: "right arrow" }, "next ▶"), h("a", { href: "#cycle/newest" }, "newest"),
    h("form", { onsubmit: (event) => { event.preventDefault(); go(shown ? shown.cycle : named_, pod.value.trim()); } }, pod, h("button", null, "Nodes × plugins"))),
  state.mode.live ? h("section", { class: "box stack" }, strip, legend()) : null, body].filter(Boolean));
  const stopper = new AbortController();
  let shown = null;

  function go(to, of = task) {
    location.hash = `cycle/${to}${of ? `/${encodeURIComponent(of)}` : ""}`;
  }

  function drawStrip() {
    const style = getComputedStyle(document.documentElement);
    const colours = PARTS.map(([, name]) => style.getPropertyValue(name));
    strip.replaceChildren(bars(state.cycles.map((each) => {
      const actions = Object.values(each.actions).reduce((all, time) => all + time, 0);
      const times = [each.open_s, actions, each.close_s, Math.max(0, each.total_s - each.open_s - actions - each.close_s)];
      return { key: each.cycle, chosen: shown && shown.cycle === each.cycle, parts: times.map((time, place_) => [colours[place_], time]),
        title: `cycle ${each.cycle}: ${seconds(each.total_s)}, ${each.bound} bound, ${each.victims} victims` };
    }), (key) => go(key), { told: seconds, label: "How long the newest cycles took" }));
  }

  async function draw() {
    body.replaceChildren(h("p", { class: "soft" }, "Deciding the cycle again…"));
    try {
      shown = await advise(`cycles/${named_}`, task ? { task } : {}, stopper.signal);
      number.value = shown.cycle;
      const [head, decisions, nodes] = [header(shown), decided(shown), task ? looked(shown) : null];
      body.replaceChildren(...[head, nodes, decisions, turns(shown), admissions(shown)].filter(Boolean));
      if (state.mode.live) drawStrip();
    } catch (error) {
      if (error.name !== "AbortError") body.replaceChildren(h("p", { class: "problem" }, error.message));
    }
  }

  const keys = (event) => {
    if (/^(INPUT|CANVAS)$/.test(event.target.tagName) || !shown) return;
    if (event.key === "ArrowLeft") go(shown.cycle - 1);
    if (event.key === "ArrowRight") go(shown.cycle + 1);
  };
  addEventListener("keydown", keys);
  const stop = onChange((what) => {
    if (state.mode.live && what.has("cycles")) drawStrip();
    if (!state.mode.live && what.has("board") && shown && shown.cycle !== state.cycle) go(state.cycle);
  });
  if (state.mode.live) drawStrip();
  draw();
  return () => { stop(); stopper.abort(); removeEventListener("keydown", keys); };
}

function legend() {
  return h("div", { class: "legend" }, PARTS.map(([text, colour]) => {
    const mark = h("i");
    mark.style.background = `var(${colour})`;
    return h("span", null, mark, text === "else" ? "journal and hand-over" : text);
  }), "Each bar is a cycle; click to open it.");
}

function header(shown) {
  const lived = state.cycles.find((each) => each.cycle === shown.cycle);
  const measured = lived || shown.took;
  const time = (name) => (measured.actions[name] !== undefined ? seconds(measured.actions[name]) : "–");
  const points = [...new Set(Object.keys(measured.plugins).map((key) => key.split(" ")[0]))];
  const plugins = shown.plugins.flatMap((tier, number) => tier.map((name) => [String(number + 1), named(name), ...points.map((point) => right(seconds(measured.plugins[`${point} ${name}`] || 0)))]));
  return h("section", { class: "box stack" }, h("h2", null, `Cycle ${shown.cycle}`), h("p", { class: "soft" }, `Decided for ${clock(shown.now)} UTC · `, counted(shown.binds.length, "bind"), ` · ${counted(shown.evicts.length, "eviction")}`,
    lived ? ` · took ${seconds(lived.total_s)}` : ` · decided again for this page in ${seconds(shown.took.total_s)}`),
  h("div", { class: "row" }, shown.actions.map((name, place) => [place ? "→" : "", h("span", { class: "pill" }, named(name), ` ${time(name)}`)])),
  table(["tier", "plugin", ...points.map((point) => h("th", { class: "n" }, point))], plugins));
}

function decided(shown) {
  const rows = [
    ...shown.evicts.map((each) => [h("span", { class: "no" }, "evict"), pod(shown, each), named(each.node), h("td", { class: "wrap" }, each.preemptor ? jobLink(jobOf(each.preemptor)) : "", ` ${each.action || each.reason || ""}`)]),
    ...shown.binds.map((each) => [h("span", { class: "yes" }, "bind"), pod(shown, each), named(each.node), h("td", { class: "name" }, each.job ? jobLink(jobOf(each.job)) : "")]),
  ];
  return h("section", { class: "box" }, h("h2", null, "Decisions"), rows.length ? table(["", "pod", "node", "for"], rows.slice(0, MOST)) : h("p", { class: "soft" }, "None."),
    rows.length > MOST ? h("p", { class: "soft" }, `and ${short(rows.length - MOST)} more`) : null);
}

const pod = (shown, each) => h("td", { class: "name" }, link(`#cycle/${shown.cycle}/${encodeURIComponent(`${each.namespace}/${each.name}`)}`, `${each.namespace}/${each.name}`));

function turns(shown) {
  if (!shown.turns.length) return null;
  const said = (job) => (shown.endings[job] || []).map((each) => `${each.action}: ${each.ending}${each.detail ? ` (${each.detail})` : ""}${each.node ? ` on ${each.node}` : ""}`);
  return h("section", { class: "box" }, h("h2", null, "Turns, and where each ended"), table(["action", "job", "queue", "ended"], shown.turns.slice(0, MOST).map((turn) => [
    turn.action, h("td", { class: "name" }, jobLink(jobOf(turn.job))), named(turn.queue), h("td", { class: "wrap" }, [...new Set(said(turn.job).filter((text) => text.startsWith(turn.action)))].slice(0, 4).map((text) => h("div", null, named(text))))])),
  shown.turns.length > MOST ? h("p", { class: "soft" }, `and ${short(shown.turns.length - MOST)} more`) : null);
}

function admissions(shown) {
  const voted = Object.entries(shown.admissions);
  if (!voted.length) return null;
  return h("section", { class: "box" }, h("h2", null, "Votes about admission"), table(["job", "votes"], voted.slice(0, MOST).map(([job, votes]) => [h("td", { class: "name" }, jobLink(jobOf(job))), votes.map((vote) => h("div", null, named(vote.join(" "))))])));
}

// --- nodes × plugins

function looked(shown) {
  return h("section", { class: "box stack" }, h("h2", null, "Looks at the nodes for ", named(shown.task)), shown.looks.length ? shown.looks.map(look) : h("p", { class: "soft" }, "No action looked at the nodes for it."), elections(shown));
}

function look(each) {
  const nodes = Object.entries(each.nodes);
  const total = (scores) => Object.values(scores || {}).reduce((all, value) => all + value, 0);
  const plugins = [...new Set(nodes.flatMap(([, said]) => Object.keys(said.scores || {})))].sort();
  nodes.sort(([one, a], [other, b]) => Number(Boolean(b.scores)) - Number(Boolean(a.scores)) || total(b.scores) - total(a.scores) || (one < other ? -1 : 1));
  const fit = nodes.filter(([, said]) => said.scores).length;
  return h("div", null, h("h3", null, each.action || "a look at the end of the cycle"), h("p", { class: "soft" }, `${fit} of ${nodes.length} nodes fit`, each.chosen ? [", chosen: ", named(each.chosen)] : ", none chosen", each.nominated ? [", nominated: ", named(each.nominated)] : ""),
    table(["node", ...plugins.map((name) => h("th", { class: "n" }, name)), h("th", { class: "n" }, "sum"), "refused by"], nodes.slice(0, MOST).map(([name, said]) => [
      h("td", { class: "name" }, name === each.chosen ? "★ " : "", link(`#cluster/${encodeURIComponent(name)}`, name)), ...plugins.map((plugin) => right(said.scores && said.scores[plugin] !== undefined ? short(said.scores[plugin]) : "")),
      right(said.scores ? short(total(said.scores)) : ""), h("td", { class: "wrap no" }, (said.refused || []).map(([plugin, text]) => h("div", null, named(`${plugin}: ${text}`))))])),
    nodes.length > MOST ? h("p", { class: "soft" }, `and ${short(nodes.length - MOST)} nodes more`) : null);
}

function elections(shown) {
  if (!shown.elections.length) return null;
  return h("div", null, h("h3", null, "Votes about victims"), shown.elections.map((each) => {
    const pods = each.candidates;
    const vote = (opinion, pod) => (opinion.abstained ? "·" : opinion.gave.includes(pod) ? h("span", { class: "yes" }, "yes") : h("span", { class: "no" }, "no"));
    return h("div", { class: "stack" }, h("p", null, named(each.preemptor), ` asked for victims on `, named(each.node), ` (${each.action}, ${each.point}): ${counted(each.victims.length, "victim")} of ${counted(pods.length, "candidate")}, decided in tier ${each.tier}.`),
      table(["candidate", ...each.opinions.map((opinion) => named(opinion.plugin)), "victim"], pods.slice(0, MOST).map((pod) => [
        h("td", { class: "name" }, named(pod)), ...each.opinions.map((opinion) => vote(opinion, pod)), each.victims.includes(pod) ? "★" : ""])));
  }));
}
