// @ts-check
// The data of the page, and the window at any budget. Membership comes from the intervals of the sweep,
// order from the rule of the placer; at the given budget both come from the run itself.

/** @typedef {number | bigint} Int an integer; both types compare exactly */
/** @typedef {{from: Int, to: Int, why: string}} Failure */
/** @typedef {{depth: number, name: string, weight?: number}} ScorerNode */
/** @typedef {[first: number, count: number] | string} Lines lines of the original, or a line of its own */
/** @typedef {[request: number, messages: number, before: Int, after: Int]} Cut */
/** @typedef {{budget: Int, requests: number, next_in: Int, head: number | null, made: Cut[], tokens: [request: number, tokens: Int][]}} Cuts */
/** @typedef {[index: number, tokens: Int]} Shared the last message of a prefix, and its tokens */
/** @typedef {{before: number, omitted: number, role: string, text: string, tokens: Int, merged_into: number | null}} Marker */
/**
 * @typedef {object} Item
 * @property {string} text
 * @property {[name: string, args: string][]} [calls]
 * @property {[index: number, call: number][]} [answers] the calls whose results it contains
 * @property {number} [group] the first message of its group
 * @property {string} [pinned] why it is never dropped
 * @property {number} label
 * @property {Int} tokens
 * @property {Int} [original] the tokens before the limit for tool results
 * @property {number} score
 * @property {[number, number[]]} [parts]
 * @property {number} [rank]
 * @property {number} [position]
 * @property {string} [reason]
 * @property {string} [cut] which cut of a replay shortened or dropped it at the given budget
 * @property {boolean} [always]
 * @property {number} [shortened] the index of its form at the given budget
 * @property {[Int, Int][]} intervals
 * @property {[Int, Int, number][]} [views] first and last budget, index of the form
 * @property {[Int, Lines[], Int, string | null][]} [forms] tokens, text, level, step of the ladder
 * @property {[string, string][]} [facts]
 */
/**
 * @typedef {object} PageData
 * @property {string} title
 * @property {{policy: string, model?: string, counter: string, format: string, date?: string, version: string}} about
 * @property {{target: Int, max: Int, reserve: Int, slots: [string, Int][], margin: number}} budget
 * @property {Int} overhead
 * @property {boolean} is_chat
 * @property {boolean} exact
 * @property {Int} least
 * @property {Int} last
 * @property {Int[]} steps
 * @property {Failure[]} failures
 * @property {{color: number, name: string}[]} labels
 * @property {{sequence: number[], ends: string} | null} order
 * @property {{from: Int, markers: Marker[]}[]} markers
 * @property {{from: Int, cuts: Cuts | null}[]} [cuts]
 * @property {{from: Int, shared: Shared | null}[]} [shared]
 * @property {number[]} by_score
 * @property {number} ranked
 * @property {ScorerNode[][]} scorers
 * @property {Item[]} items
 */

/** @type {PageData} */
const data = readData();
const { items, budget: given } = data;
const target = BigInt(given.target);
const least = BigInt(data.least);
const last = BigInt(data.last) > target ? BigInt(data.last) : target;
const unit = data.is_chat ? 'message' : 'item';

/** Without a rule of the placer, items are listed in input order. */
const order = data.order ?? { sequence: [...items.keys()], ends: '' };

/** The budgets at which the window changes; the slider stops only there if budgets were sampled. */
const stops = findStops();

/** @returns {PageData} */
function readData() {
  const text = document.getElementById('data')?.textContent ?? '';
  /** @param {any} value */
  const int = (value) => (typeof value === 'string' ? BigInt(value) : value);
  const read = JSON.parse(text);
  for (const name of ['least', 'last', 'overhead']) read[name] = int(read[name]);
  read.steps = read.steps.map(int);
  for (const failure of read.failures) {
    failure.from = int(failure.from);
    failure.to = int(failure.to);
  }
  for (const name of ['target', 'max', 'reserve']) read.budget[name] = int(read.budget[name]);
  read.budget.slots = read.budget.slots.map((/** @type {[string, any]} */ [kind, tokens]) => [kind, int(tokens)]);
  for (const entry of [...read.markers, ...(read.cuts ?? []), ...(read.shared ?? [])]) entry.from = int(entry.from);
  for (const item of read.items) {
    item.tokens = int(item.tokens);
    if (item.original !== undefined) item.original = int(item.original);
    item.score = Number(item.score);
    item.intervals = item.intervals.map((/** @type {any[]} */ interval) => interval.map(int));
    item.views = item.views?.map((/** @type {any[]} */ view) => view.map(int));
    item.forms = item.forms?.map((/** @type {any[]} */ [tokens, lines, level, step]) => [int(tokens), lines, int(level), step]);
    if (item.parts) item.parts[1] = item.parts[1].map(Number);
  }
  return read;
}

function findStops() {
  const found = data.steps.map(BigInt).filter((step) => step >= least);
  if (!data.exact && !found.includes(target)) found.push(target);
  return found.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
}

/**
 * Returns how many entries of an ascending list are at most `value`.
 * @template T
 * @param {T[]} list
 * @param {(entry: T) => Int} of
 * @param {Int} value
 */
function countUpTo(list, of, value) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (of(list[middle]) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * @param {Item} item
 * @param {bigint} budget
 */
function isIn(item, budget) {
  if (budget === target) return item.position !== undefined;
  const count = countUpTo(item.intervals, (interval) => interval[0], budget);
  return count > 0 && budget <= item.intervals[count - 1][1];
}

/**
 * Returns the window at a budget in the order the model reads it.
 * @param {bigint} budget
 */
function windowAt(budget) {
  const { sequence, ends } = order;
  const members = sequence.filter((index) => isIn(items[index], budget));
  if (budget === target) return members.sort((a, b) => (items[a].position ?? 0) - (items[b].position ?? 0));
  if (ends === '') return members;
  const front = members.filter((_, number) => ends[number] !== 'b');
  const back = members.filter((_, number) => ends[number] === 'b');
  return front.concat(back.reverse());
}

/** @param {bigint} budget */
function failureAt(budget) {
  if (budget === target) return undefined;
  return data.failures.find((failure) => failure.from <= budget && budget <= failure.to);
}

/**
 * Returns the index of the shorter form that the window of a budget has; `undefined` for an item in full.
 * @param {Item} item
 * @param {bigint} budget
 */
function formAt(item, budget) {
  if (budget === target) return item.shortened;
  return item.views?.find(([from, to]) => from <= budget && budget <= to)?.[2];
}

/**
 * Returns the messages in the place of dropped ones, by the message that each precedes.
 * @param {bigint} budget
 * @returns {Map<number, Marker>}
 */
function markersAt(budget) {
  const count = countUpTo(data.markers, (entry) => entry.from, budget);
  const markers = count > 0 ? data.markers[count - 1].markers : [];
  return new Map(markers.map((marker) => [marker.before, marker]));
}

/**
 * Returns the cuts of a replay at a budget; `undefined` where the chat fits and for other policies.
 * @param {bigint} budget
 */
function cutsAt(budget) {
  const entries = data.cuts ?? [];
  const count = countUpTo(entries, (entry) => entry.from, budget);
  return entries[count - 1]?.cuts ?? undefined;
}

/**
 * Returns the prefix that the window of a budget shares with that of the previous request.
 * @param {bigint} budget
 */
function sharedAt(budget) {
  const entries = data.shared ?? [];
  const count = countUpTo(entries, (entry) => entry.from, budget);
  return entries[count - 1]?.shared ?? undefined;
}

/**
 * Returns the tokens of an item as a window has it.
 * @param {Item} item
 * @param {bigint} budget
 * @returns {Int}
 */
function tokensAt(item, budget) {
  const form = formAt(item, budget);
  return form === undefined ? item.tokens : (item.forms?.[form]?.[0] ?? item.tokens);
}

/**
 * @param {number[]} members
 * @param {bigint} budget
 */
function tokensOf(members, budget) {
  return members.reduce((sum, index) => sum + BigInt(tokensAt(items[index], budget)), 0n);
}

/**
 * Returns how many tokens an item has less than in the input; 0 if the window has it in full.
 * @param {Item} item
 * @param {bigint} budget
 */
function savedAt(item, budget) {
  return BigInt(item.original ?? item.tokens) - BigInt(tokensAt(item, budget));
}

/**
 * Returns the members of a window that are shortened, largest cut first.
 * @param {number[]} members
 * @param {bigint} budget
 */
function shortenedOf(members, budget) {
  const isShortened = (/** @type {number} */ index) =>
    items[index].original !== undefined || formAt(items[index], budget) !== undefined;
  const found = members.filter(isShortened).map((index) => ({ index, saved: savedAt(items[index], budget) }));
  found.sort((a, b) => (a.saved < b.saved ? 1 : a.saved > b.saved ? -1 : a.index - b.index));
  return found;
}

/**
 * Splits a list of items into runs of one group each.
 * @param {number[]} members
 * @returns {number[][]}
 */
function cardsOf(members) {
  /** @type {number[][]} */
  const cards = [];
  /** @type {number | undefined} */
  let group;
  for (const index of members) {
    const own = items[index].group;
    if (own !== undefined && own === group) cards[cards.length - 1].push(index);
    else cards.push([index]);
    group = own;
  }
  return cards;
}
