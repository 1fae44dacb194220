// Nodes as cells, by rack or HyperNode, coloured by a resource; a node's pods beside them.

import { allFull, cardTable, ofCards } from "./cards.js";
import { figure, amounts, clock, counted, h, jobLink, jobOf, link, named, short, table } from "./dom.js";
import { NodeMap } from "./nodemap.js";
import { portions } from "./portions.js";
import { onChange, residents, state } from "./source.js";

const LOOK_MS = 2000;
let chosen = "";

export function cluster(place, given) {
  const tiles = h("div", { class: "tiles", role: "group", "aria-label": "Resource that colours the cells" });
  const counts = h("p", { class: "soft" });
  const search = h("input", { type: "search", placeholder: "node…", "aria-label": "Go to a node", list: "nodes" });
  const detail = h("aside", { class: "box", "aria-live": "polite" }, h("p", { class: "soft" }, "Choose a node to see its pods: by click, or with the arrow keys and Enter."));
  const legend = h("div", { class: "legend" });
  const picture = h("div", { class: "box stack" });
  place.append(tiles, h("div", { class: "beside" }, picture, detail));
  const map = new NodeMap(picture, (row) => { location.hash = `cluster/${encodeURIComponent(state.board.nodes[row])}`; });
  picture.prepend(h("div", { class: "row" }, counts, h("form", { onsubmit: find }, search)));
  picture.append(legend);

  function find(event) {
    event.preventDefault();
    const wanted = search.value.trim();
    const name = state.board.nodes.find((each) => each === wanted) || state.board.nodes.find((each) => each.includes(wanted));
    if (name) location.hash = `cluster/${encodeURIComponent(name)}`;
  }

  function drawTiles() {
    const board = state.board;
    if (!board.resources.includes(chosen)) chosen = board.resources[0] || "";
    tiles.replaceChildren(...board.resources.map((resource, number) => {
      const found = portions(board, number, board.nodes.keys());
      const told = `${figure(resource, found.used)} of ${figure(resource, found.all)}`;
      const also = [...onTheWay(resource, found), ...cardsFull(board, number)].join(", ");
      return h("button", { type: "button", class: "tile", "data-resource": resource, "aria-pressed": String(resource === chosen), onclick: () => { chosen = resource; draw(); } },
        h("small", null, named(resource)), h("b", null, told),
        stacked(found), h("small", null, also || `${short(found.all ? (100 * found.used) / found.all : 0)} % used`));
    }));
  }

  function drawLegend() {
    const key = (kind, text) => h("span", null, h("i", { class: `key-${kind}` }), text);
    legend.replaceChildren(...(map.fine
      ? [key("used", "used"), key("free", "free"), key("releasing", "releasing"), key("promised", "promised (being bound, or nominated)")]
      : [h("span", null, "free", h("span", { class: "ramp" }), "used"), key("releasing", "releasing"), key("promised", "promised")]),
    key("cordoned", "cordoned or not ready"), map.fine && ofCards(chosen) ? "small cells: a node's cards" : "");
  }

  function draw() {
    const board = state.board;
    if (!board) {
      counts.textContent = state.mode.scheduler === false ? "This run has no scheduler: there is no view of the cluster to show." : "Waiting for the first picture…";
      return;
    }
    drawTiles();
    const off = board.cordoned.filter(Boolean).length + board.ready.filter((each) => !each).length;
    const pods = Object.entries(board.pods).map(([name, number]) => `${number.toLocaleString("en")} ${name.toLowerCase()}`).join(", ");
    counts.textContent = `${counted(board.nodes.length, "node")}${off ? ` (${off} cordoned or not ready)` : ""} · pods of jobs: ${pods || "none"}`;
    map.show(board, board.resources.indexOf(chosen), ofCards(chosen) ? state.cards : {});
    drawLegend();
  }

  let asked = new AbortController();
  async function showNode(name) {
    if (!state.board) return;
    const row = state.board.row.get(name) ?? -1;
    map.select(row);
    asked.abort();
    if (row < 0) {
      detail.replaceChildren(h("h2", null, named(name)), h("p", { class: "soft" }, "There is no such node here."));
      return;
    }
    asked = new AbortController();
    try {
      const pods = await residents(name, asked.signal);
      const board = state.board;
      detail.replaceChildren(...[h("h2", null, named(name)), where(board, row), h("div", { class: "close" }, board.resources.map((resource, number) => line(board, resource, number, row))),
        state.cards[name] ? cardTable(state.cards[name]) : null, h("h3", null, counted(pods.length, "pod")), podTable(pods)].filter(Boolean));
    } catch (error) {
      if (error.name !== "AbortError") detail.replaceChildren(h("p", { class: "problem" }, error.message));
    }
  }

  let looked = -Infinity;
  let timer = 0;
  /** While something runs so seldom that it costs little, and once more for what has changed meanwhile. */
  function lookAgain() {
    clearTimeout(timer);
    timer = setTimeout(() => { looked = performance.now(); showNode(given); }, state.mode.live ? looked + LOOK_MS - performance.now() : 0);
  }
  const stop = onChange((what) => {
    if (what.has("board") || what.has("queues")) draw();
    if (given && what.has("board")) lookAgain();
  });
  draw();
  if (given) lookAgain();
  return () => { stop(); clearTimeout(timer); asked.abort(); map.close(); };
}

function where(board, row) {
  const path = board.groups[board.group[row]] || [];
  const said = [board.cordoned[row] ? "cordoned" : "", board.ready[row] ? "" : "not ready"].filter(Boolean);
  return h("p", { class: "soft" }, path.map((each, number) => [number ? " / " : "", named(each)]), said.length ? ` · ${said.join(", ")}` : "");
}

function line(board, resource, number, row) {
  const found = portions(board, number, [row]);
  if (!found.all) return null;
  const told = [`${figure(resource, found.used)} of ${figure(resource, found.all)}`, ...onTheWay(resource, found)].join(", ");
  return h("div", null, h("div", { class: "row tight" }, h("span", null, named(resource)), h("span", { class: "soft" }, told)), stacked(found));
}

function cardsFull(board, number) {
  const full = allFull(board.resources[number], board.nodes.map((name, row) => [board.allocatable[number][row], state.cards[name]]));
  return full === null ? [] : [`cards ${short(100 * full)} % full`];
}

function onTheWay(resource, found) {
  return ["releasing", "promised"].filter((part) => found[part]).map((part) => `${figure(resource, found[part])} ${part}`);
}

function stacked({ all, stack }) {
  return h("div", { class: "bar" }, stack.map(([kind, value]) => h("i", { class: kind, "width%": all ? (100 * value) / all : 0 })));
}

function podTable(pods) {
  return table(["pod", "state", "asks"], pods.map((pod) => [
    h("td", { class: "name" }, link(`#cycle/newest/${encodeURIComponent(pod.pod)}`, pod.pod), pod.job ? h("div", { class: "soft" }, "of ", jobLink(jobOf(pod.job))) : null),
    h("td", null, pod.status, h("div", { class: "soft" }, `created ${clock(pod.created)}`)), h("td", { class: "wrap" }, amounts(pod.asks))]));
}
