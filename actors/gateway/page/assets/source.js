// What the server says: by events while something runs, by questions about a cycle of a journal otherwise.

import { PARTS } from "./portions.js";

/** What every view reads. `cycle`: the one that is looked at, and `until` its moment; null: the newest. */
export const state = {
  mode: { live: true }, connected: false, board: null, cycles: [], queues: {}, cards: {}, cycle: null, until: null, history: [],
};

const listeners = new Set();
let waiting = false;

/** Called at most once a frame, with what has changed since. */
export function onChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

let changed = new Set();
export function tell(what) {
  changed.add(what);
  if (waiting) return;
  waiting = true;
  const told = () => {
    if (!waiting) return;
    waiting = false;
    const found = changed;
    changed = new Set();
    const began = performance.now();
    for (const listener of [...listeners]) listener(found);
    if (spent.first_ms) spent.drawn_ms = Math.max(spent.drawn_ms, performance.now() - began);
    else if (state.board) spent.first_ms = performance.now();
  };
  if (document.hidden) setTimeout(told, 250);
  else requestAnimationFrame(told);
}

/** JSON from the server. Throws an Error in the server's words. */
export async function ask(path, signal) {
  const answer = await fetch(path, { headers: { accept: "application/json" }, signal, credentials: "same-origin" });
  if (answer.status === 401) location.reload();
  const text = await answer.text();
  if (answer.ok) return JSON.parse(text);
  let message = text;
  try { message = JSON.parse(text).message || text; } catch { /* as it came */ }
  throw Object.assign(new Error(message || answer.statusText), { code: answer.status });
}

/** What is told of a cycle; the rest is told of the whole journal. */
const OF_A_CYCLE = /(^|\/)(standings|explanations|estimates)(\/|$)/;

/** A question to the adviser: about the cycle that is looked at. It answers few at a time; so one that is busy is asked again. */
export async function advise(path, query = {}, signal = undefined) {
  const asked = new URLSearchParams(query);
  if (state.cycle !== null && OF_A_CYCLE.test(path) && !asked.has("cycle")) asked.set("cycle", state.cycle);
  const whole = `/apis/pumice.dev/v1/${path}${[...asked].length ? `?${asked}` : ""}`;
  await turn(signal);
  try {
    for (;;) {
      try {
        return await ask(whole, signal);
      } catch (error) {
        if (error.code !== 429) throw error;
        await rest(AGAIN_MS, signal);
      }
    }
  } finally {
    asking -= 1;
    next();
  }
}

/** As many questions as the server answers at a time; the others wait here in their order, so that our own never turn each
 *  other away. Who is turned away all the same (others ask too, and a question that was left ends a moment later) asks again. */
const MOST_ASKED = 2;
const AGAIN_MS = 500;
const queued = [];
let asking = 0;

export const questionsWaiting = () => queued.length;

function next() {
  while (asking < MOST_ASKED && queued.length) {
    asking += 1;
    queued.shift().go();
  }
  tell("questions");
}

/** Resolves when it is this question's turn; rejects when the view that asked is left before. */
function turn(signal) {
  return new Promise((go, fail) => {
    if (signal && signal.aborted) return fail(signal.reason);
    const mine = { go };
    queued.push(mine);
    if (signal) signal.addEventListener("abort", () => {
      const place = queued.indexOf(mine);
      if (place < 0) return;
      queued.splice(place, 1);
      fail(signal.reason);
      tell("questions");
    });
    return next();
  });
}

function rest(milliseconds, signal) {
  return new Promise((done, fail) => {
    const timer = setTimeout(done, milliseconds);
    if (signal) signal.addEventListener("abort", () => { clearTimeout(timer); fail(signal.reason); });
  });
}

function takeBoard(board) {
  state.board = board;
  board.row = new Map(board.nodes.map((name, row) => [name, row]));
}

function takeChange(change) {
  const board = state.board;
  if (!board) return;
  for (const part of PARTS) {
    (change[part] || []).forEach((line, resource) => {
      const column = board[part][resource];
      for (let place = 0; place < line.length; place += 1) column[change.rows[place]] = line[place];
    });
  }
  for (const name of ["pods", "jobs", "binding", "evicting"]) board[name] = change[name];
}

const KEPT = 240;
const HISTORY = 600;

function takeCycles(told) {
  state.cycles = (told.anew ? told.cycles : state.cycles.concat(told.cycles)).slice(-KEPT);
}

function takeQueues(told) {
  state.queues = told.queues;
  state.cards = told.cards;
  const newest = state.cycles[state.cycles.length - 1];
  if (newest) {
    const allocated = Object.fromEntries(Object.entries(told.queues).map(([name, queue]) => [name, queue.allocated]));
    state.history.push({ at: newest.now, cycle: newest.cycle, allocated });
    if (state.history.length > HISTORY) state.history.splice(0, state.history.length - HISTORY);
  }
}

/** What the browser spends on us, in milliseconds: reading an update, drawing one, and when the first picture was there. */
export const spent = { updates: 0, longest_ms: 0, last_ms: 0, drawn_ms: 0, first_ms: 0 };

function timed(work, what) {
  return (event) => {
    const began = performance.now();
    work(JSON.parse(event.data));
    spent.updates += 1;
    spent.last_ms = performance.now() - began;
    spent.longest_ms = Math.max(spent.longest_ms, spent.last_ms);
    tell(what);
  };
}

export function follow() {
  const events = new EventSource("/page/live");
  events.addEventListener("board", timed(takeBoard, "board"));
  events.addEventListener("change", timed(takeChange, "board"));
  events.addEventListener("cycles", timed(takeCycles, "cycles"));
  events.addEventListener("queues", timed(takeQueues, "queues"));
  events.onopen = () => { state.connected = true; tell("state"); };
  events.onerror = () => {
    state.connected = false;
    tell("state");
    if (events.readyState === EventSource.CLOSED) setTimeout(follow, 3000);
  };
}

/** A journal without a running process, at one of its cycles, whose board is asked for; `end`: when the journal ends, if it is the
 *  last one. */
export async function lookAt(asked, end) {
  const board = await asked;
  state.cycle = board.cycle;
  state.until = end === null ? board.now : Math.max(end, board.now);
  state.cards = board.cards;
  takeBoard(board);
  tell("board");
}

/** The pods on a node. */
export async function residents(node, signal) {
  if (state.mode.live) return (await ask(`/page/nodes/${encodeURIComponent(node)}`, signal)).pods;
  return (await advise(`boards/${state.cycle}`, { node }, signal)).residents;
}
