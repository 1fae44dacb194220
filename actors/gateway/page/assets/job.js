// The story of a gang: what it went through, drawn; why it waits, what would help, and when it starts.

import { advise, onChange, state } from "./source.js";
import { amounts, clock, counted, h, jobLink, link, moment, named, s, seconds, short, table } from "./dom.js";

const WIDTH = 720;
const LEFT = 150;
const ROW = 13;
const MOST_ROWS = 80;
const MOST_JOBS = 1000;
const WAITS = 0.35; // how strongly a time of waiting is drawn

export function job(place, given) {
  const name = h("input", { value: given, placeholder: "namespace/name", "aria-label": "Job", size: 34, required: true });
  const body = h("div", { class: "stack" });
  place.append(h("div", { class: "row" }, h("form", { onsubmit: go }, name, h("button", null, "Show")), h("span", { class: "soft" }, "A Volcano Job, a PodGroup or a pod, by namespace/name.")), body);
  const asked = new AbortController();

  function go(event) {
    event.preventDefault();
    const wanted = name.value.trim();
    location.hash = `job/${encodeURIComponent(wanted.includes("/") ? wanted : `default/${wanted}`)}`;
  }

  if (given) tellStory(body, given, asked.signal);
  else offerAgain(body, asked.signal);
  return () => asked.abort();
}

/** The jobs that wait and all that there were; again for another cycle. */
function offerAgain(body, signal) {
  offer(body, signal);
  signal.addEventListener("abort", onChange((what) => !state.mode.live && what.has("board") && offer(body, signal)));
}

async function offer(body, signal) {
  if (!body.children.length) body.replaceChildren(h("p", { class: "soft" }, "Waiting for the first answer…"));
  try {
    const all = h("section", { class: "box" }, h("h2", null, "All jobs"), h("p", { class: "soft" }, "Reading the journal…"));
    const standing = await advise("standings", {}, signal);
    const waiting = standing.waiting.slice(0, 60);
    body.replaceChildren(h("section", { class: "box" }, h("h2", null, "Jobs that wait"), waiting.length
      ? h("ul", { class: "list" }, waiting.map((each) => h("li", null, jobLink(each.made_for), " ", h("span", { class: "pill", title: each.wait.helps }, each.reason), " ", named(each.because))))
      : h("p", { class: "soft" }, "No job waits.")), all);
    const found = await advise("measures", {}, signal);
    all.replaceChildren(h("h2", null, `All jobs (${found.jobs.length.toLocaleString("en")})`), found.jobs.length
      ? table(["job", "queue", "state"], found.jobs.slice(0, MOST_JOBS).map((each) => [h("td", { class: "name" }, jobLink(each.job)), named(each.queue), h("span", { class: "pill" }, each.state)]))
      : h("p", { class: "soft" }, "There was none yet."), found.jobs.length > MOST_JOBS ? h("p", { class: "soft" }, `and ${short(found.jobs.length - MOST_JOBS)} more; give the name of any of them`) : "");
  } catch (error) {
    if (error.name !== "AbortError") body.replaceChildren(h("p", { class: "problem" }, error.message));
  }
}

async function tellStory(body, name, signal) {
  const [namespace, ...rest] = name.split("/");
  const path = `namespaces/${encodeURIComponent(namespace)}`;
  const own = encodeURIComponent(rest.join("/"));
  const box = (...inside) => h("section", { class: "box stack" }, inside);
  const picture = box(h("p", { class: "soft" }, "Reading the journal…"));
  const [why, help, when] = [box(h("h2", null, "Why"), h("p", { class: "soft" }, "Deciding that cycle again…")), box(), box()];
  body.replaceChildren(h("div", { class: "beside" }, h("div", { class: "stack" }, picture), h("div", { class: "stack" }, why, help, when)));
  let asked = new AbortController();
  let story = null;

  /** Of the cycle that is looked at. */
  function explain() {
    asked.abort();
    asked = new AbortController();
    const mine = asked.signal;
    const offered = (within, title, text, work) => within.replaceChildren(h("h2", null, title), h("button", { type: "button", onclick: () => more(within, work) }, text));
    offered(help, "What would help", "Try changes (5 s)", () => helped(path, own, mine));
    offered(when, "When", "Sample futures", () => estimated(path, own, name, mine));
    if (story && story.submitted > lookedAt()) return fill(why, "Why", async () => [h("p", { class: "soft" }, "There was no such job yet.")]);
    return fill(why, "Why", async () => explained(await explanation(path, own, {}, mine)));
  }

  const draw = () => story && picture.replaceChildren(h("h2", null, "The story"), ...drawn(story));
  const stop = onChange((what) => {
    if (state.mode.live || !what.has("board")) return;
    draw();
    explain();
  });
  signal.addEventListener("abort", () => { stop(); asked.abort(); });
  await Promise.all([explain(), fill(picture, "The story", async () => {
    story = await advise(`${path}/stories/${own}`, {}, signal);
    return drawn(story);
  })]);
}

async function fill(box, title, work) {
  try {
    box.replaceChildren(h("h2", null, title), ...(await work()));
  } catch (error) {
    if (error.name !== "AbortError") box.replaceChildren(h("h2", null, title), h("p", { class: "problem" }, error.message));
  }
}

/** Whatever it is that the name stands for. */
async function explanation(path, own, query, signal) {
  let problem = null;
  for (const of of ["job", "podgroup", "pod"]) {
    try {
      return await advise(`${path}/explanations/${own}`, { of, ...query }, signal);
    } catch (error) {
      if (error.code !== 404) throw error;
      problem = problem || error;
    }
  }
  throw problem;
}

async function more(box, work) {
  const button = box.querySelector("button");
  button.disabled = true;
  button.setAttribute("aria-busy", "true");
  button.setAttribute("aria-pressed", "true");
  try {
    box.replaceChildren(box.firstChild, ...(await work()));
  } catch (error) {
    if (error.name !== "AbortError") box.replaceChildren(box.firstChild, h("p", { class: "problem" }, error.message));
  }
}

function explained(found) {
  const nodes = Object.entries(found.nodes || {}).sort(([, one], [, other]) => other - one);
  const tasks = Object.entries(found.tasks || {});
  return [
    h("p", null, h("span", { class: "pill" }, found.state), " ", h("b", null, named(found.reason || ""))), h("p", { class: "wrap" }, named(found.message || "")),
    h("p", { class: "soft" }, "As of ", link(`#cycle/${found.cycle}`, `cycle ${found.cycle}`)),
    nodes.length ? table(["nodes", "said"], nodes.map(([reason, number]) => [h("td", { class: "n" }, String(number)), h("td", { class: "wrap" }, named(reason))])) : null,
    tasks.length ? h("p", { class: "soft" }, counted(tasks.length, "pod"), ": ", tasks.slice(0, 3).map(([pod], number) => [number ? ", " : "", link(`#cycle/${found.cycle}/${encodeURIComponent(pod)}`, pod)]), tasks.length > 3 ? " …" : "") : null,
  ].filter(Boolean);
}

async function helped(path, own, signal) {
  const found = await explanation(path, own, { budget: "5" }, signal);
  if (!found.unblock.length) return [h("p", { class: "soft" }, found.state === "Pending" || found.state === "Inqueue" ? "No single change that was tried lets it start." : "It does not wait.")];
  return [h("ul", { class: "list" }, found.unblock.map((each) => h("li", null, named(typeof each === "string" ? each : each.change || each.text || JSON.stringify(each)))))];
}

async function estimated(path, own, name, signal) {
  const found = (await advise(`${path}/estimates/${own}`, { samples: "12" }, signal)).estimates[name];
  if (!found || !found.known) return [h("p", null, "Not known: ", named((found && found.why) || "nothing is known of how long such pods run"))];
  return [h("p", null, h("b", null, `in ${seconds(found.low_s)} to ${found.high_s === null ? "later than was looked" : seconds(found.high_s)}`), `, most likely in ${seconds(found.likely_s)}`),
    h("p", { class: "soft" }, "80 of 100 sampled futures lie in that range.")];
}

// --- the picture

/** The story up to a moment: what comes later is not known yet. */
function upTo(story, until) {
  const known = (at) => (at && at <= until ? at : null);
  const pods = story.pods.filter((pod) => pod.created <= until).map((pod) => {
    const [bound, started, ended] = [known(pod.bound), known(pod.started), known(pod.ended)];
    const still = { phase: started ? "Running" : "Pending", node: bound ? pod.node : "", evicted_for: null };
    return { ...pod, ...(pod.ended && !ended ? still : {}), bound, started, ended };
  });
  const events = story.events.filter((each) => each.at <= until);
  return { ...story, admitted: known(story.admitted), pods, events, tries: story.tries.filter((each) => each.at <= until) };
}

const lookedAt = () => (state.mode.live ? Date.now() / 1000 : state.until);

function drawn(whole) {
  const now = lookedAt();
  if (whole.submitted > now) return [h("p", null, named(whole.job), ` is submitted later: ${moment(whole.submitted)} UTC.`)];
  const story = upTo(whole, now);
  const last = Math.max(story.submitted, ...story.events.map((each) => each.at), ...story.pods.map((pod) => pod.ended || pod.started || pod.bound || pod.created));
  const end = story.pods.every((pod) => pod.ended) ? last : Math.max(last, now);
  const began = story.submitted;
  const x = (at) => LEFT + ((at - began) / (end - began || 1)) * (WIDTH - LEFT - 12);
  const pods = story.pods.slice(0, MOST_ROWS);
  const high = 74 + pods.length * ROW + 8;
  const evictions = story.pods.filter((pod) => pod.evicted_for !== null).sort((one, other) => one.ended - other.ended);
  const parts = [
    h("p", null, named(story.job), story.queue ? [" in queue ", named(story.queue)] : "", `, a gang of ${story.min_member} and more. `,
      `Submitted ${moment(story.submitted)} UTC`, story.admitted ? `, admitted after ${seconds(story.admitted - began)}` : ", not admitted", firstBound(story) ? `, first bound after ${seconds(firstBound(story) - began)}.` : ", nothing bound."),
    h("div", { class: "scroll" }, s("svg", { viewBox: `0 0 ${WIDTH} ${high}`, role: "img", "aria-label": `What ${story.job} went through` }, axis(began, end, x, high), milestones(story, x), tries(story, x), pods.map((pod, row) => lane(pod, 66 + row * ROW, x, end)))),
    h("div", { class: "legend" }, [["soft", "waits", WAITS], ["promised", "bound"], ["used", "runs"]].map(([kind, text, opacity]) => h("span", null, swatch(kind, opacity), text)),
      [["soft", "ended"], ["releasing", "evicted"]].map(([kind, text]) => h("span", null, swatch(kind, 1, true), text)), h("span", null, "▼ the scheduler's answer changed")),
    pods.length < story.pods.length + story.pods_left_out ? h("p", { class: "soft" }, `${counted(story.pods.length + story.pods_left_out - pods.length, "pod")} more.`) : null,
    evictions.length ? h("div", null, h("h3", null, "Evictions"), h("ul", { class: "list" }, evictions.slice(0, 50).map((pod) => h("li", null, `${clock(pod.ended)} `, named(`${pod.namespace}/${pod.name}`), " from ", named(pod.node), pod.evicted_for ? [" to make room for ", named(pod.evicted_for)] : "", ` (${pod.evicted_by})`)))) : null,
    story.tries.length ? h("div", null, h("h3", null, "What the scheduler said, cycle by cycle"), table(["cycle", "at", "said"], story.tries.map((each) => [link(`#cycle/${each.cycle}`, each.cycle), clock(each.at), h("td", { class: "wrap" }, ofPods(each.pods), named(each.said))]))) : null,
    h("div", null, h("h3", null, "Everything that the journal tells of it"), table(["at", "what"], story.events.slice(-300).map((each) => [clock(each.at), h("td", { class: "wrap" }, named(each.text))]))),
  ];
  return parts.filter(Boolean);
}

/** Whom an answer is about, unless it is the gang. */
const ofPods = (pods) => (pods.length ? h("span", { class: "soft" }, named(pods[0]), pods.length > 1 ? ` and ${counted(pods.length - 1, "pod")} more: ` : ": ") : null);

const firstBound = (story) => Math.min(...story.pods.filter((pod) => pod.bound).map((pod) => pod.bound), Infinity) % Infinity || 0;

function swatch(kind, opacity = 1, round = false) {
  const found = h("i");
  Object.assign(found.style, { background: `var(--${kind})`, opacity, borderRadius: round ? "50%" : "" });
  return found;
}

function axis(began, end, x, high) {
  return [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const at = began + (end - began) * part;
    return s("g", null, s("line", { class: "axis", x1: x(at), x2: x(at), y1: 16, y2: high }), s("text", { x: x(at), y: 11, "text-anchor": part === 1 ? "end" : part ? "middle" : "start" }, part ? `+${seconds(at - began)}` : clock(at)));
  });
}

function milestones(story, x) {
  const found = [["submitted", story.submitted], ["admitted", story.admitted]].filter(([, at]) => at);
  return s("g", null, s("text", { x: 0, y: 31, class: "strong" }, "job"),
    found.map(([what, at], number) => s("g", null, s("circle", { cx: x(at), cy: 27, r: 4, fill: number ? "var(--used)" : "var(--accent)" }), s("title", null, `${what} ${clock(at)}`))));
}

function tries(story, x) {
  return s("g", null, s("text", { x: 0, y: 50, class: "strong" }, "answers"),
    story.tries.map((each) => s("path", { d: `M${x(each.at) - 4},42h8l-4,8z`, fill: "var(--accent)" }, s("title", null, `cycle ${each.cycle}: ${each.said}`))));
}

function lane(pod, y, x, end) {
  const box = (from, to, kind) => (from && to > from ? s("rect", { x: x(from), y: y - 9, width: Math.max(1, x(to) - x(from)), height: ROW - 3, fill: `var(--${kind})`, "fill-opacity": kind === "soft" ? WAITS : 1 }) : null);
  const ended = pod.ended || end;
  const bound = Math.min(pod.bound || ended, ended);
  const name = pod.name.length > 24 ? `…${[...pod.name].slice(-22).join("")}` : pod.name;
  return s("g", null, s("title", null, `${pod.namespace}/${pod.name}: ${pod.phase}${pod.node ? ` on ${pod.node}` : ""}, asks ${amounts(pod.request)}`), s("text", { x: 0, y }, name),
    box(pod.created, bound, "soft"), pod.bound ? box(pod.bound, Math.min(pod.started || ended, ended), "promised") : null, pod.started ? box(pod.started, ended, "used") : null,
    pod.ended ? s("circle", { cx: x(pod.ended), cy: y - 4, r: 3.5, fill: `var(--${pod.evicted_for !== null ? "releasing" : "soft"})` }) : null);
}
