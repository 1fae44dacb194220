// Cards as cells in a cell: which there are on a node, and how full each is.

import { amount, counted, h, named, right, short, table } from "./dom.js";

const CARDS = /gpu|npu|ascend|cards?$|accelerator|tpu/i;
const MOST = 16;
const MOST_TOLD = 8;

export const ofCards = (resource) => CARDS.test(resource);

/** What part of each card of a node is taken, 0 to 1; null where the resource is not counted in cards. `known`: the
 *  cards that pods share, [name, sharers, MiB used, cores used (per cent), MiB]; else whole ones are given away. */
export function fullness(resource, all, used, known) {
  if (!ofCards(resource) || !all) return null;
  if (known && known.length) return known.map((card) => share(resource, all / known.length, card));
  if (all > MOST) return null;
  return Array.from({ length: Math.round(all) }, (_, number) => Math.max(0, Math.min(1, used - number)));
}

/** What part of all cards that pods share is taken, 0 to 1; null where there are none. It may be more than pods ask for: who
 *  asks for cards and no memory gets whole ones. `nodes`: [what there is of the resource, cards] of each. */
export function allFull(resource, nodes) {
  if (!ofCards(resource)) return null;
  const parts = nodes.flatMap(([all, known]) => (all && known ? known.map((card) => share(resource, all / known.length, card)) : []));
  return parts.length ? parts.reduce((whole, each) => whole + each, 0) / parts.length : null;
}

function share(resource, split, [, sharers, used, cores, memory]) {
  const part = /mem/i.test(resource) ? (memory ? used / memory : 0) : /core/i.test(resource) ? cores / 100 : sharers / split;
  return Math.max(0, Math.min(1, part));
}

/** Of a grid about as wide as high in which no place stays empty, if there is one. */
export function columns(count) {
  const least = Math.ceil(Math.sqrt(count));
  for (let across = least; across * across <= 2 * count; across += 1) if (count % across === 0) return across;
  return least;
}

/** Draws them in a square: across, then down. `colour(number)`: of a card's part that is taken. */
export function drawCards(pen, x, y, inner, parts, none, colour) {
  const across = columns(parts.length);
  const [wide, high] = [inner / across, inner / Math.ceil(parts.length / across)];
  const gap = wide > 4 ? 1 : 0.5;
  parts.forEach((part, number) => {
    const left = x + (number % across) * wide;
    const top = y + Math.floor(number / across) * high;
    pen.fillStyle = none;
    pen.fillRect(left, top, wide - gap, high - gap);
    pen.fillStyle = colour(number);
    pen.fillRect(left, top + (1 - part) * (high - gap), wide - gap, part * (high - gap));
  });
}

/** A line for each of the cards that pods share. */
export function toldCards(known) {
  const lines = known.slice(0, MOST_TOLD).map(([name, sharers, used, cores, memory]) => `${name}: ${mebibytes(used)} of ${mebibytes(memory)}, ${short(cores)} % of its cores, ${counted(sharers, "pod")}`);
  return known.length > MOST_TOLD ? [...lines, "…"] : lines;
}

/** Each with its bars, for the panel of a node. */
export function cardTable(known) {
  return h("div", null, h("h3", null, "Cards"), table(["card", right("pods"), "memory", "cores"],
    known.map(([card, sharers, used, cores, memory]) => [h("td", { class: "wrap" }, named(card)), right(short(sharers)),
      filled(used, memory, `${mebibytes(used)} of ${mebibytes(memory)}`), filled(cores, 100, `${short(cores)} %`)])));
}

const mebibytes = (value) => amount("memory", value * 2 ** 20);

function filled(value, all, text) {
  return [h("div", { class: "bar" }, h("i", { class: "used", "width%": all ? (100 * value) / all : 0 })), h("small", { class: "soft" }, text)];
}
