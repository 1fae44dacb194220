// Elements and words. Whatever comes from a cluster becomes text, never markup; names are isolated, so that one that
// is written from right to left leaves its neighbours where they are.

/** An element: h("td", {class: "n"}, text, child…). Children that are null are left out. */
export function h(tag, properties, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** The same in SVG. */
export function s(tag, properties, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "width%") element.style.width = `${Math.max(0, Math.min(100, value))}%`;
    else if (name === "left%") element.style.left = `${Math.max(0, Math.min(100, value))}%`;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(3)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

/** A name out of the cluster. */
export const named = (text) => h("bdi", null, String(text));

export const link = (to, text) => h("a", { href: to }, named(text));

export const jobLink = (job) => link(`#job/${encodeURIComponent(job)}`, job);

/** The job whose PodGroup it is: without the uid that the group's name ends with. */
export function jobOf(group) {
  return group.replace(/-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/, "");
}

export function table(heads, rows, caption) {
  const cells = (kind, row) => row.map((cell) => (cell instanceof Element && /^T[DH]$/.test(cell.tagName) ? cell : h(kind, null, cell)));
  return h("div", { class: "scroll tall" },
    h("table", null, caption ? h("caption", { class: "soft" }, caption) : null,
      h("thead", null, h("tr", null, cells("th", heads))),
      h("tbody", null, rows.map((row) => h("tr", null, cells("td", row))))));
}

export const right = (text) => h("td", { class: "n" }, text);

const SIZES = [["Ti", 2 ** 40], ["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 2 ** 10]];

/** A figure of a resource, where its name stands beside it. */
export function figure(resource, value) {
  if (resource === "memory" || /hugepages|storage/.test(resource)) {
    const [unit, size] = SIZES.find(([, each]) => Math.abs(value) >= each) || ["", 1];
    return `${short(value / size)}${unit}`;
  }
  return short(value);
}

/** An amount of a resource with its unit: cores, bytes, pieces by the last part of their name. */
export function amount(resource, value) {
  const told = figure(resource, value);
  if (resource === "cpu") return `${told} ${value === 1 ? "core" : "cores"}`;
  return resource === "memory" || /hugepages|storage/.test(resource) ? told : `${told} ${resource.split("/").pop()}`;
}

export function short(value) {
  if (Math.abs(value) >= 1e6) return `${Number((value / 1e6).toPrecision(3))} M`;
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
}

export function amounts(listed) {
  const found = Object.entries(listed).filter(([, value]) => value);
  return found.map(([name, value]) => `${figure(name, value)} ${name}`).join(", ") || "nothing";
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 86400) return `${short(value / 86400)} d`;
  if (size >= 3600) return `${short(value / 3600)} h`;
  if (size >= 120) return `${short(value / 60)} min`;
  if (size >= 1 || value === 0) return `${short(value)} s`;
  if (size >= 0.001) return `${short(value * 1000)} ms`;
  return `${short(value * 1e6)} µs`;
}

export const clock = (at) => (at ? new Date(at * 1000).toISOString().slice(11, 19) : "–");

export const moment = (at) => (at ? new Date(at * 1000).toISOString().replace("T", " ").slice(0, 19) : "–");

export const counted = (number, one) => `${number.toLocaleString("en")} ${one}${number === 1 ? "" : "s"}`;
