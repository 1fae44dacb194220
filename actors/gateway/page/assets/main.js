// The frame around the views: which one is shown, the theme, keys, whether the server is there.

import { counted, h } from "./dom.js";
import { ask, follow, onChange, questionsWaiting, spent, state } from "./source.js";
import { cluster } from "./cluster.js";
import { queues } from "./queues.js";
import { job } from "./job.js";
import { cycle } from "./cycle.js";
import { health } from "./health.js";
import { slider } from "./slider.js";

const VIEWS = { cluster: ["Cluster", cluster], queues: ["Queues", queues], job: ["Job", job], cycle: ["Cycle", cycle], health: ["Health", health] };
/** Who may see some namespaces only is shown jobs; all other views are of the whole cluster. */
const views = () => (state.mode.namespaces ? { job: VIEWS.job } : VIEWS);
const place = document.getElementById("view");
let close = () => {};

function show() {
  const [named, ...rest] = location.hash.slice(1).split("/");
  const name = Object.hasOwn(views(), named) ? named : Object.keys(views())[0];
  for (const each of document.querySelectorAll("#nav a")) {
    if (each.dataset.view === name) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  close();
  place.replaceChildren();
  document.title = `${VIEWS[name][0]} · Pumice`;
  let given = rest.join("/");
  try { given = decodeURIComponent(given); } catch { /* as it stands */ }
  close = VIEWS[name][1](place, given) || (() => {});
}

function showState() {
  const shown = document.getElementById("state");
  const newest = state.cycles[state.cycles.length - 1];
  const at = newest ? ` · cycle ${newest.cycle.toLocaleString("en")}` : "";
  shown.className = `state ${state.mode.live ? (state.connected ? "live" : "lost") : ""}`;
  const waiting = questionsWaiting() ? ` · ${counted(questionsWaiting(), "question")} waiting` : "";
  const seen = state.mode.namespaces;
  if (seen) {
    shown.className = "state";
    shown.textContent = `namespace${seen.length > 1 ? "s" : ""} ${seen.join(", ")}; there is more${waiting}`;
    return;
  }
  shown.textContent = (state.mode.live ? (state.connected ? `live${at}` : "no connection; trying again") : "journal") + waiting;
}

function theme(wanted) {
  document.documentElement.dataset.theme = wanted;
  for (const each of document.querySelectorAll("canvas")) each.dispatchEvent(new Event("theme"));
}

function themes() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch { /* a browser that keeps nothing */ }
  theme(chosen || (dark.matches ? "dark" : "light"));
  dark.addEventListener("change", () => chosen || theme(dark.matches ? "dark" : "light"));
  document.getElementById("theme").addEventListener("click", () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("theme", chosen); } catch { /* it holds until the page is closed */ }
    theme(chosen);
  });
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input:not([type=range]), select, textarea")) return;
  const name = Object.keys(views())[Number(event.key) - 1];
  if (name) location.hash = name;
  else if (event.key === "t") document.getElementById("theme").click();
}

/** A journal is looked through while it is shown: what is found stands above every view. */
async function showDamage() {
  const { damage } = await ask("/page/damage");
  const banner = document.getElementById("damage");
  banner.hidden = !damage;
  banner.textContent = `This journal is damaged: ${damage}. What is shown after it proves nothing.`;
}

async function begin() {
  themes();
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); place.focus(); });
  addEventListener("hashchange", show);
  addEventListener("keydown", keys);
  onChange(showState);
  state.mode = await ask("/page/mode");
  document.getElementById("nav").append(...Object.entries(views()).map(([name, [title]], number) =>
    h("a", { href: `#${name}`, "data-view": name, title: `key ${number + 1}` }, title)));
  document.getElementById("leave").hidden = !state.mode.token;
  if (!state.mode.live) showDamage().catch(() => {});
  if (state.mode.live && !state.mode.namespaces) follow();
  else if (!state.mode.live) await slider(document.getElementById("slider"));
  show();
  showState();
}

globalThis.pumice = { spent, state };
begin().catch((error) => place.append(h("p", { class: "problem" }, error.message)));
