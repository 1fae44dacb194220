// A canvas of nodes: thousands of cells, in blocks by rack or HyperNode. Fine cells show amounts, small ones a colour.

import { drawCards, fullness, toldCards } from "./cards.js";
import { figure, h } from "./dom.js";
import { portions } from "./portions.js";

const SIZES = [120, 96, 76, 60, 46, 38, 32, 26, 22, 18, 15, 12, 10, 8, 7];
const LABEL = 15;
const HEAD = 20;
const GAP = 10;
const FINE = 16;

export class NodeMap {
  /** `choose(row)` is called for the clicked node. */
  constructor(place, choose) {
    this.canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": "Nodes" });
    this.tip = h("div", { class: "tip", hidden: true });
    this.place = h("div", { class: "map" }, this.canvas, this.tip);
    place.append(this.place);
    this.choose = choose;
    this.selected = -1;
    this.board = null;
    this.fine = true;
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.canvas.addEventListener("click", (event) => { const row = this.at(event); if (row >= 0) this.choose(row); });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("theme", () => { this.colours = null; this.draw(); });
    this.watch = new ResizeObserver(() => { this.laid = null; this.draw(); });
    this.watch.observe(this.place);
  }

  close() { this.watch.disconnect(); }

  show(board, resource, cards) {
    if (board !== this.board) this.laid = null;
    Object.assign(this, { board, resource, cards });
    this.draw();
  }

  select(row) {
    this.selected = row;
    this.draw();
  }

  // --- where everything is

  layout() {
    const width = this.place.clientWidth;
    if (this.laid && this.laid.width === width) return;
    const members = this.board.groups.map(() => []);
    this.board.group.forEach((group, row) => members[group].push(row));
    const wished = Math.max(260, innerHeight - scrollY - this.place.getBoundingClientRect().top - 60);
    let found = null;
    for (const size of SIZES) {
      found = this.flow(width, size, members);
      if (found.height <= wished) break;
    }
    this.laid = found;
    this.fine = found.size >= FINE;
    const scale = devicePixelRatio || 1;
    Object.assign(this.canvas, { width: Math.round(width * scale), height: Math.round(found.height * scale) });
    this.canvas.style.height = `${found.height}px`;
  }

  /** Blocks from left to right; the first of each zone (or of whatever is above), and of each line, bears its name as well. */
  flow(width, size, members) {
    const cells = new Array(this.board.nodes.length);
    const labels = [];
    const headed = this.board.groups.some((path) => path.length > 1) ? HEAD : 0;
    let [x, y, tallest, above, named] = [0, 0, 0, null, null];
    members.forEach((rows, group) => {
      const path = this.board.groups[group];
      const most = Math.max(1, Math.floor(width / size));
      const across = Math.min(most, members.length === 1 ? most : Math.max(Math.ceil(Math.sqrt(rows.length * 1.6)), Math.ceil(52 / size)));
      const label = headed + (path.length ? LABEL : 0);
      if (x && x + across * size > width) {
        y += tallest + GAP;
        [x, tallest, above] = [0, 0, null];
      }
      const head = path.slice(0, -1).join(" / ");
      const goesOn = head === named; // on a new line: it is no other zone
      if (head !== above && head) labels.push({ x, y, text: goesOn ? `↳ ${head}, continued` : head, strong: !goesOn, width: across * size });
      named = head;
      above = head;
      if (path.length) labels.push({ x, y: y + headed, text: path[path.length - 1], width: across * size });
      rows.forEach((row, number) => {
        cells[row] = [x + (number % across) * size, y + label + Math.floor(number / across) * size];
      });
      x += across * size + GAP;
      tallest = Math.max(tallest, Math.ceil(rows.length / across) * size + label);
    });
    return { width, size, cells, labels, height: y + tallest + 2 };
  }

  // --- drawing

  palette() {
    if (this.colours) return this.colours;
    const style = getComputedStyle(document.documentElement);
    const found = Object.fromEntries(["none", "low", "high", "used", "releasing", "promised", "ink", "soft", "line", "card"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    found.ramp = Array.from({ length: 33 }, (_, step) => (step < 3 ? mixed(found.none, found.low, step / 3) : mixed(found.low, found.high, (step - 3) / 29)));
    this.colours = found;
    return found;
  }

  draw() {
    if (!this.board || !this.place.clientWidth) return;
    this.layout();
    const scale = devicePixelRatio || 1;
    const pen = this.canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, this.laid.width, this.laid.height);
    this.drawLabels(pen);
    for (let row = 0; row < this.board.nodes.length; row += 1) this.cell(pen, row);
    if (this.selected >= 0 && this.laid.cells[this.selected]) this.frame(pen, this.selected);
    this.canvas.setAttribute("aria-label", `${this.board.nodes.length} nodes by ${this.board.resources[this.resource]}. ${this.told(this.selected)}`);
  }

  drawLabels(pen) {
    const colours = this.palette();
    pen.textBaseline = "top";
    for (const { x, y, text, strong, width } of this.laid.labels) {
      pen.font = strong ? "600 12px system-ui, sans-serif" : "11px system-ui, sans-serif";
      pen.fillStyle = strong ? colours.ink : colours.soft;
      pen.fillText(shortened(pen, text, width), x, y + 1);
    }
  }

  cell(pen, row) {
    const colours = this.palette();
    const { size, cells } = this.laid;
    const [x, y] = cells[row];
    const inner = inside(size);
    const { all, used, releasing, promised, coming, stack } = portions(this.board, this.resource, [row]);
    const part = (of) => (all ? Math.max(0, Math.min(1, of / all)) : 0);
    if (!all) {
      pen.strokeStyle = colours.line;
      pen.strokeRect(x + 0.5, y + 0.5, inner - 1, inner - 1);
    } else if (this.fine && this.pieces(row, all, used)) {
      const known = this.cards[this.board.nodes[row]];
      const [firm, soon] = [stack[0][1], stack[0][1] + stack[1][1]];
      const kind = (number) => (known || number < firm ? "used" : number < soon ? "promised" : "releasing");
      drawCards(pen, x, y, inner, this.pieces(row, all, used + coming), colours.none, (number) => colours[kind(number)]);
    } else if (this.fine) {
      pen.fillStyle = colours.none;
      pen.fillRect(x, y, inner, inner);
      let bottom = y + inner;
      for (const [kind, value] of stack) {
        const high = part(value) * inner;
        pen.fillStyle = colours[kind];
        pen.fillRect(x, bottom - high, inner, high);
        bottom -= high;
      }
    } else {
      pen.fillStyle = colours.ramp[Math.round(part(used) * 32)];
      pen.fillRect(x, y, inner, inner);
      if (releasing || promised) {
        pen.fillStyle = releasing ? colours.releasing : colours.promised;
        pen.fillRect(x, y + inner - Math.max(2, inner / 4), inner, Math.max(2, inner / 4));
      }
    }
    if (this.board.cordoned[row] || !this.board.ready[row]) this.hatch(pen, x, y, inner);
  }

  /** How full the cards of a node are; null where the resource is not counted in cards. */
  pieces(row, all, used) {
    return fullness(this.board.resources[this.resource], all, used, this.cards[this.board.nodes[row]]);
  }

  hatch(pen, x, y, inner) {
    pen.save();
    pen.beginPath();
    pen.rect(x, y, inner, inner);
    pen.clip();
    pen.strokeStyle = this.palette().soft;
    pen.beginPath();
    for (let offset = -inner; offset < inner; offset += 4) {
      pen.moveTo(x + offset, y + inner);
      pen.lineTo(x + offset + inner, y);
    }
    pen.stroke();
    pen.restore();
  }

  frame(pen, row) {
    const [x, y] = this.laid.cells[row];
    pen.lineWidth = 2;
    pen.strokeStyle = this.palette().ink;
    const { size } = this.laid;
    pen.strokeRect(x + 1, y + 1, Math.max(1, inside(size) - 2), Math.max(1, inside(size) - 2));
    pen.lineWidth = 1;
  }

  // --- pointing

  at(event) {
    if (!this.laid) return -1;
    const box = this.canvas.getBoundingClientRect();
    const [x, y, size] = [event.clientX - box.left, event.clientY - box.top, this.laid.size];
    return this.laid.cells.findIndex(([left, top]) => x >= left && x < left + size && y >= top && y < top + size);
  }

  told(row) {
    if (row < 0 || row >= this.board.nodes.length) return "";
    const resource = this.board.resources[this.resource];
    const found = portions(this.board, this.resource, [row]);
    const also = ["releasing", "promised"].filter((part) => found[part]).map((part) => `, ${figure(resource, found[part])} ${part}`).join("");
    const off = this.board.cordoned[row] ? "\ncordoned" : this.board.ready[row] ? "" : "\nnot ready";
    const cards = this.pieces(row, found.all, found.used) && this.cards[this.board.nodes[row]];
    return [`${this.board.nodes[row]}\n${figure(resource, found.used)} of ${figure(resource, found.all)} ${resource} used${also}${off}`, ...(cards ? toldCards(cards) : [])].join("\n");
  }

  point(event) {
    const row = this.at(event);
    this.tip.hidden = row < 0;
    if (row < 0) return;
    this.tip.textContent = this.told(row);
    const box = this.place.getBoundingClientRect();
    this.tip.style.left = `${Math.max(0, Math.min(event.clientX - box.left + 14, box.width - 220))}px`;
    this.tip.style.top = `${event.clientY - box.top + 16}px`;
  }

  key(event) {
    if (!this.board) return;
    const last = this.board.nodes.length - 1;
    if (last < 0) return;
    if (event.key === "Enter" && this.laid.cells[this.selected]) this.choose(this.selected);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const far = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step && !far) return;
    event.preventDefault();
    if (this.selected < 0) this.selected = 0;
    else if (step) this.selected = Math.max(0, Math.min(last, this.selected + step));
    else this.selected = this.beyond(far);
    this.draw();
  }

  /** The nearest node below (1) or above (-1). */
  beyond(way) {
    const [x, y] = this.laid.cells[this.selected];
    let [best, nearest] = [this.selected, Infinity];
    this.laid.cells.forEach(([left, top], row) => {
      const off = (top - y) * way;
      const distance = off + 3 * Math.abs(left - x);
      if (off > 1 && distance < nearest) [best, nearest] = [row, distance];
    });
    return best;
  }
}

/** What a cell of that size leaves to draw on: the rest keeps it apart from the next. */
const inside = (size) => size - (size > 50 ? 6 : size > 9 ? 2 : 1);

function shortened(pen, text, width) {
  let shown = text;
  while (shown.length > 1 && pen.measureText(shown).width > width + 6) shown = `${shown.slice(0, -2)}…`;
  return shown;
}

function mixed(from, to, share) {
  const parts = [from, to].map((colour) => [1, 3, 5].map((place) => parseInt(colour.length === 4 ? colour[(place + 1) / 2].repeat(2) : colour.slice(place, place + 2), 16)));
  return `rgb(${parts[0].map((each, number) => Math.round(each + (parts[1][number] - each) * share)).join(" ")})`;
}
