// Small plots in SVG: lines over time, bars of cycles.

import { h, named, s } from "./dom.js";

export const COLOURS = ["#2b7f9c", "#c2622d", "#6a9a3a", "#8b5fbf", "#c94f7c", "#a08a2a", "#3f6fc4", "#4b9a86", "#9a5a4a", "#707a82"];

const WIDTH = 720;
const LEFT = 84; // what stands beside an axis is as wide as `107,018 cores`

/** Lines over one axis of time. `series`: [{name, points: [[x, y]…]}]; `told`: how a value is written; `whole`: values are
 *  counts, which have no halves. */
export function lines(series, { high = 170, told = String, when = String, label = "", whole = false } = {}) {
  const shown = series.filter((each) => each.points.length);
  if (!shown.length) return h("p", { class: "soft" }, "Nothing to draw yet.");
  const xs = shown.flatMap((each) => each.points.map((point) => point[0]));
  const most = Math.max(...shown.flatMap((each) => each.points.map((point) => point[1])), 0) || 1;
  const top = whole && most > 1 ? 2 * Math.ceil(most / 2) : whole ? 1 : most;
  const [first, last] = [Math.min(...xs), Math.max(...xs)];
  const x = (value) => LEFT + ((value - first) / (last - first || 1)) * (WIDTH - LEFT - 10);
  const y = (value) => high - 18 - (value / top) * (high - 30);
  const grid = (whole && top === 1 ? [0, 1] : [0, 0.5, 1]).map((part) => [s("line", { class: "axis", x1: LEFT, x2: WIDTH - 10, y1: y(top * part), y2: y(top * part) }),
    s("text", { x: LEFT - 4, y: y(top * part) + 4, "text-anchor": "end" }, told(top * part))]);
  const paths = shown.map((each, number) => {
    const steps = each.points.map(([at, value], place) => `${place ? `H${x(at).toFixed(1)}V` : `M${x(at).toFixed(1)},`}${y(value).toFixed(1)}`).join("");
    return s("path", { d: steps, fill: "none", stroke: each.colour || COLOURS[number % COLOURS.length], "stroke-width": 1.8 }, s("title", null, each.name));
  });
  return h("figure", { class: "stack" },
    h("div", { class: "scroll" }, s("svg", { viewBox: `0 0 ${WIDTH} ${high}`, role: "img", "aria-label": label }, grid,
      s("text", { x: LEFT, y: high - 3 }, when(first)), s("text", { x: WIDTH - 10, y: high - 3, "text-anchor": "end" }, when(last)), paths)),
    h("figcaption", { class: "legend" }, shown.map((each, number) => h("span", null, dot(each.colour || COLOURS[number % COLOURS.length]), named(each.name)))));
}

export function dot(colour) {
  const found = h("i");
  found.style.background = colour;
  return found;
}

/** One bar a cycle, stacked; a click chooses it. `bars`: [{key, title, parts: [[colour, value]…], chosen}]. */
export function bars(list, choose, { high = 90, told = String, label = "" } = {}) {
  if (!list.length) return h("p", { class: "soft" }, "Nothing to draw yet.");
  const total = (bar) => bar.parts.reduce((all, [, value]) => all + value, 0);
  const top = Math.max(...list.map(total)) || 1;
  const wide = (WIDTH - LEFT - 10) / list.length;
  return s("svg", { viewBox: `0 0 ${WIDTH} ${high}`, role: "img", "aria-label": label },
    s("text", { x: LEFT - 4, y: 12, "text-anchor": "end" }, told(top)), s("line", { class: "axis", x1: LEFT, x2: WIDTH - 10, y1: high - 4, y2: high - 4 }),
    list.map((bar, number) => {
      let bottom = high - 4;
      const left = LEFT + number * wide;
      return s("g", { onclick: () => choose(bar.key) }, s("title", null, bar.title),
        s("rect", { x: left, y: 2, width: wide, height: high - 6, fill: bar.chosen ? "currentColor" : "transparent", "fill-opacity": 0.12 }),
        bar.parts.map(([colour, value]) => {
          const tall = (value / top) * (high - 14);
          bottom -= tall;
          return s("rect", { x: left + wide * 0.1, y: bottom, width: Math.max(0.6, wide * 0.8), height: tall, fill: colour });
        }));
    }));
}
