// Who borrows from whom: ribbons from those that use less than they deserve to those that have more.

import { figure, h, s } from "./dom.js";
import { COLOURS } from "./plots.js";

const GAP = 10;
const LEAST = 22;
const NOBODY = "of no queue";

/** `loans`: [[lender, borrower, amount]…]; a lender without a name is no queue. */
export function ribbons(loans, resource) {
  if (!loans.length) return h("p", { class: "soft" }, `No queue has more ${resource} than deserved.`);
  const narrow = innerWidth <= 640;
  const [width, letters] = narrow ? [340, 11] : [720, 26];
  const [left, right] = [width * 0.33, width * 0.67];
  const all = loans.reduce((sum, [, , value]) => sum + value, 0);
  const sides = [0, 1].map((place) => side(loans, place));
  const most = Math.max(...sides.map((each) => each.size));
  const scale = Math.max(120, LEAST * most) / all;
  const high = Math.max(...sides.map((each) => placed(each, scale)));
  const colours = new Map([...sides[0].keys()].map((name, number) => [name, name ? COLOURS[number % COLOURS.length] : "var(--soft)"]));
  const drawn = loans.map(([lender, borrower, value]) => {
    const [from, to, thick] = [taken(sides[0].get(lender), value * scale), taken(sides[1].get(borrower), value * scale), value * scale];
    const middle = (left + right) / 2;
    return s("path", { d: `M${left},${from}C${middle},${from} ${middle},${to} ${right},${to}l0,${thick}C${middle},${to + thick} ${middle},${from + thick} ${left},${from + thick}Z`, fill: colours.get(lender), "fill-opacity": 0.45 },
      s("title", null, `${borrower} has ${figure(resource, value)} of ${lender || "the part that no queue deserves"}`));
  });
  const label = (listed, x, anchor) => [...listed].map(([name, each]) => s("text", { x, y: each.top + each.value * scale / 2 + 4, "text-anchor": anchor, class: "strong" }, `${shown(name, letters)}  ${figure(resource, each.value)}`, s("title", null, name || NOBODY)));
  return h("div", null, h("div", { class: "fits" }, s("svg", { viewBox: `0 0 ${width} ${high}`, role: "img", "aria-label": "Lenders on the left, borrowers on the right" }, drawn, label(sides[0], left - 6, "end"), label(sides[1], right + 6, "start"))),
    h("p", { class: "soft" }, `Left: ${resource} that queues deserve and others have. Right: who has more than deserved. The nearest kin lends first; among equally near ones it is in proportion, as nothing says whose is whose.`));
}

/** By name: how much, in the order in which they come. */
function side(loans, place) {
  const found = new Map();
  for (const loan of loans) {
    const each = found.get(loan[place]) || { value: 0 };
    each.value += loan[2];
    found.set(loan[place], each);
  }
  return found;
}

/** Where each begins, none closer than its label needs; and where the last one ends. */
function placed(listed, scale) {
  let y = GAP / 2;
  for (const each of listed.values()) {
    const tall = each.value * scale;
    const spare = Math.max(0, LEAST - GAP - tall) / 2;
    each.top = each.next = y + spare;
    y += tall + 2 * spare + GAP;
  }
  return y;
}

function taken(each, tall) {
  each.next += tall;
  return each.next - tall;
}

function shown(name, letters) {
  const text = name || NOBODY;
  return text.length > letters ? `${[...text].slice(0, letters - 1).join("")}…` : text;
}
