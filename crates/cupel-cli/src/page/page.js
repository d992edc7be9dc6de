// @ts-check
// Shows a run and the windows of other budgets. Membership comes from the intervals of the sweep,
// order from the rule of the placer; at the given budget both come from the run itself.

/** @typedef {number | bigint} Int an integer; both types compare exactly */
/** @typedef {{from: Int, to: Int, why: string}} Failure */
/** @typedef {{depth: number, name: string, weight?: number}} ScorerNode */
/**
 * @typedef {object} Item
 * @property {string} text
 * @property {number} kind
 * @property {Int} tokens
 * @property {number} score
 * @property {[number, number[]]} [parts]
 * @property {number} [rank]
 * @property {boolean} pinned
 * @property {number} [position]
 * @property {string} [reason]
 * @property {boolean} always
 * @property {Int} [shortened] the tokens of its view at the given budget
 * @property {[Int, Int][]} intervals
 * @property {[Int, Int, Int][]} [views] first and last budget, tokens of the view
 * @property {[string, string][]} facts
 */
/**
 * @typedef {object} PageData
 * @property {string} title
 * @property {{target: Int, max: Int, reserve: Int, slots: [string, Int][], margin: number}} budget
 * @property {boolean} exact
 * @property {Int} last
 * @property {Int[]} steps
 * @property {Failure[]} failures
 * @property {string[]} kinds
 * @property {{sequence: number[], ends: string} | null} order
 * @property {number[]} by_score
 * @property {number} ranked
 * @property {ScorerNode[][]} scorers
 * @property {Item[]} items
 */

/** @type {PageData} */
const data = readData();
const { items, budget: given } = data;
const target = BigInt(given.target);
const last = BigInt(data.last) > target ? BigInt(data.last) : target;

/** Without a rule of the placer, items are listed in input order. */
const order = data.order ?? { sequence: [...items.keys()], ends: '' };

/** The budgets at which the window changes; the slider stops only there if budgets were sampled. */
const stops = data.exact ? data.steps.map(BigInt) : withTarget(data.steps.map(BigInt));

/** The number of items a list shows at first, and adds at a time. */
const PAGE = 100;
const COLORS = 8;

const state = {
  budget: target,
  /** @type {Set<number>} */
  kinds: new Set(),
  query: '',
  shown: { window: PAGE, out: PAGE },
};

/** @type {(HTMLLIElement | undefined)[]} */
const rows = new Array(items.length);
/** @type {string[]} */
const searchable = new Array(items.length);

const view = {
  result: element('result', HTMLOutputElement),
  bar: element('bar', HTMLElement),
  legend: element('legend', HTMLElement),
  slider: element('slider', HTMLInputElement),
  exact: element('exact', HTMLInputElement),
  previous: element('previous', HTMLButtonElement),
  next: element('next', HTMLButtonElement),
  reset: element('reset', HTMLButtonElement),
  notice: element('notice', HTMLElement),
  search: element('search', HTMLInputElement),
  kinds: element('kinds', HTMLElement),
  parts: element('parts', HTMLElement),
  row: element('row', HTMLTemplateElement),
};

/* ---- data ---- */

/** @returns {PageData} */
function readData() {
  const text = element('data', HTMLScriptElement).textContent ?? '';
  /** @param {any} value */
  const int = (value) => (typeof value === 'string' ? BigInt(value) : value);
  const read = JSON.parse(text);
  read.last = int(read.last);
  read.steps = read.steps.map(int);
  for (const failure of read.failures) {
    failure.from = int(failure.from);
    failure.to = int(failure.to);
  }
  for (const name of ['target', 'max', 'reserve']) read.budget[name] = int(read.budget[name]);
  read.budget.slots = read.budget.slots.map((/** @type {[string, any]} */ [kind, tokens]) => [kind, int(tokens)]);
  for (const item of read.items) {
    item.tokens = int(item.tokens);
    item.score = Number(item.score);
    item.intervals = item.intervals.map((/** @type {any[]} */ interval) => interval.map(int));
    item.views = item.views?.map((/** @type {any[]} */ view) => view.map(int));
    if (item.shortened !== undefined) item.shortened = int(item.shortened);
    if (item.parts) item.parts[1] = item.parts[1].map(Number);
  }
  return read;
}

/** @param {bigint[]} budgets */
function withTarget(budgets) {
  if (!budgets.includes(target)) budgets.push(target);
  return budgets.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
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
 * Returns the tokens of the view that the window of a budget has; `undefined` for an item in full.
 * @param {Item} item
 * @param {bigint} budget
 */
function shortenedAt(item, budget) {
  if (budget === target) return item.shortened;
  return item.views?.find(([from, to]) => from <= budget && budget <= to)?.[2];
}

/** @param {number[]} members */
function tokensOf(members) {
  const size = (/** @type {Item} */ item) => shortenedAt(item, state.budget) ?? item.tokens;
  return members.reduce((sum, index) => sum + BigInt(size(items[index])), 0n);
}

/* ---- text ---- */

const format = new Intl.NumberFormat('en-US');

/** @param {Int} value */
function tokens(value) {
  return format.format(value);
}

/** @param {number} score */
function scoreText(score) {
  if (!Number.isFinite(score)) return Number.isNaN(score) ? 'NaN' : score > 0 ? '∞' : '−∞';
  return Math.abs(score) < 1000 ? score.toFixed(3) : score.toPrecision(4);
}

/** @param {string} text */
function visible(text) {
  // Control characters as pictures, so that nothing is silently missing.
  return text
    .replaceAll('\r\n', '\n')
    .replace(/[\u0000-\u0008\u000b-\u001f]/g, (control) => String.fromCharCode(0x2400 + control.charCodeAt(0)))
    .replaceAll('\u007f', '\u2421');
}

/** @param {string} text */
function excerpt(text) {
  const LONGEST = 240;
  const start = Array.from(text.slice(0, 4 * LONGEST).replace(/\s+/g, ' ').trim());
  const cut = start.length > LONGEST || text.length > 4 * LONGEST;
  return visible(start.slice(0, LONGEST).join('')) + (cut ? '…' : '');
}

/**
 * Returns why an item is out at a budget: the reason of the run, and the budgets that include the item.
 * @param {Item} item
 * @param {bigint} budget
 * @returns {[string, string]}
 */
function reasonAt(item, budget) {
  if (item.always) return [item.reason ?? '', ''];
  const next = item.intervals[countUpTo(item.intervals, (interval) => interval[0], budget)];
  const before = item.intervals.at(-1);
  const where = next
    ? included(item, next)
    : before
      ? `included at smaller budgets only, up to ${tokens(before[1])}`
      : `not included at any budget up to ${tokens(data.last)}`;
  if (budget === target && item.reason) return [item.reason, where];
  return [failureAt(budget) ? 'no window at this budget' : 'not selected at this budget', where];
}

/**
 * @param {Item} item
 * @param {[Int, Int]} next the next interval that includes the item
 */
function included(item, next) {
  const stays = next[1] >= data.last;
  if (stays || !data.exact) return `included at a budget of ${tokens(next[0])}`;
  const more = item.intervals.at(-1) !== next;
  return `included at budgets of ${tokens(next[0])} to ${tokens(next[1])}${more ? ' and at larger ones' : ''}`;
}

/** @param {Item} item */
function budgetsOf(item) {
  const LONGEST = 6;
  if (item.intervals.length === 0) return `none up to ${tokens(data.last)} tokens`;
  const ranges = item.intervals
    .slice(0, LONGEST)
    .map(([from, to]) => (from === to ? tokens(from) : `${tokens(from)} to ${tokens(to)}`));
  const more = item.intervals.length - ranges.length;
  return ranges.join(', ') + (more > 0 ? ` and ${format.format(more)} more ranges` : '') + ' tokens';
}

/* ---- drawing ---- */

/**
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new (...rest: any[]) => T} type
 * @returns {T}
 */
function element(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${id}`);
  return found;
}

/**
 * A new element with a class and children.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {string} [className]
 * @param {(Node | string)[]} children
 */
function make(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

/**
 * @param {ParentNode} parent
 * @param {string} selector
 * @returns {HTMLElement}
 */
function inside(parent, selector) {
  const found = parent.querySelector(selector);
  if (!(found instanceof HTMLElement)) throw new Error(`the page has no ${selector}`);
  return found;
}

/** @param {number} kind */
function color(kind) {
  return `var(--k${Math.min(kind, COLORS - 1)})`;
}

/**
 * @param {string} className
 * @param {string} [value]
 */
function swatch(className, value) {
  const made = make('span', `swatch ${className}`);
  if (value) made.style.setProperty('--color', value);
  return made;
}

/** @param {number[]} members */
function drawBudget(members) {
  const { budget } = state;
  const used = tokensOf(members);
  const max = budget + BigInt(given.max) - target;
  const reserve = BigInt(given.reserve);
  const ceiling = max - reserve;
  const limit = budget < ceiling ? budget : ceiling;

  /** @type {{className: string, label: string, tokens: bigint, color?: string}[]} */
  const parts = [];
  const pinned = members.filter((index) => items[index].pinned);
  if (pinned.length > 0) {
    parts.push({ className: 'used', label: 'pinned', tokens: tokensOf(pinned), color: 'var(--pinned)' });
  }
  data.kinds.forEach((label, kind) => {
    const selected = members.filter((index) => !items[index].pinned && items[index].kind === kind);
    if (selected.length > 0) {
      parts.push({ className: 'used', label, tokens: tokensOf(selected), color: color(kind) });
    }
  });
  parts.push({ className: 'free', label: 'free', tokens: limit > used ? limit - used : 0n });
  const above = ceiling - (limit > used ? limit : used);
  if (above > 0n) parts.push({ className: 'above', label: 'above the target', tokens: above });
  if (reserve > 0n) parts.push({ className: 'reserve', label: 'reserved for the answer', tokens: reserve });

  view.bar.replaceChildren(
    ...parts.map((part) => {
      const segment = make('div', part.className);
      segment.style.flexGrow = String(Number(part.tokens));
      if (part.color) segment.style.setProperty('--color', part.color);
      segment.title = `${part.label}: ${tokens(part.tokens)} tokens`;
      return segment;
    }),
  );
  view.bar.setAttribute('aria-label', `${tokens(used)} of ${tokens(budget)} tokens used`);
  view.legend.replaceChildren(
    ...parts.map((part) =>
      make('li', part.className, swatch(part.className, part.color), part.label, make('b', '', tokens(part.tokens))),
    ),
  );
  view.result.replaceChildren(
    make('b', '', tokens(members.length)),
    ` of ${tokens(items.length)} items, `,
    make('b', '', tokens(used)),
    ` of ${tokens(budget)} tokens`,
  );
}

function drawControls() {
  const { budget } = state;
  const place = countUpTo(stops, (stop) => stop, budget) - 1;
  view.slider.value = String(data.exact ? budget : place);
  view.slider.setAttribute('aria-valuetext', `${tokens(budget)} tokens`);
  view.exact.value = String(budget);
  view.previous.disabled = place < 1;
  view.next.disabled = place + 1 >= stops.length;
  view.reset.disabled = budget === target;
  document.documentElement.style.setProperty('--at', String(last > 0n ? Number(budget) / Number(last) : 0));

  const failure = failureAt(budget);
  const notices = [];
  if (failure) notices.push(`There is no window at ${tokens(budget)} tokens: ${failure.why}.`);
  if (!data.exact) {
    notices.push('Budgets were sampled for this policy: the slider stops only at sampled budgets.');
  }
  if (data.order === null && budget !== target) {
    notices.push(`The order is known only at a budget of ${tokens(target)}; items are listed in input order.`);
  }
  view.notice.textContent = notices.join(' ');
  view.notice.hidden = notices.length === 0;
}

/** @param {number} index */
function isShown(index) {
  if (state.kinds.size > 0 && !state.kinds.has(items[index].kind)) return false;
  if (state.query === '') return true;
  searchable[index] ??= items[index].text.toLowerCase();
  return searchable[index].includes(state.query);
}

/**
 * @param {'window' | 'out'} name
 * @param {number[]} members
 * @param {string} whenEmpty
 */
function drawList(name, members, whenEmpty) {
  const shown = members.filter(isShown);
  const first = shown.slice(0, state.shown[name]);
  const places = new Map(name === 'window' ? members.map((index, place) => [index, place + 1]) : []);
  element(name, HTMLElement).replaceChildren(...first.map((index) => row(index, places.get(index))));
  const all = tokens(members.length);
  element(`${name}-count`, HTMLElement).textContent =
    shown.length === members.length ? all : `${tokens(shown.length)} of ${all}`;
  const empty = element(`${name}-empty`, HTMLElement);
  empty.hidden = shown.length > 0;
  empty.textContent = members.length > 0 ? 'Nothing here matches the filter.' : whenEmpty;
  const more = element(`${name}-more`, HTMLButtonElement);
  more.hidden = first.length === shown.length;
  more.textContent = `Show more (${tokens(shown.length - first.length)} left)`;
}

/**
 * Returns the row of an item; rows are created once.
 * @param {number} index
 * @param {number | undefined} place its place in the window, from 1
 */
function row(index, place) {
  const made = (rows[index] ??= makeRow(index));
  inside(made, '.place').textContent = place === undefined ? '' : String(place);
  const reason = inside(made, '.reason');
  if (place === undefined) {
    const [why, where] = reasonAt(items[index], state.budget);
    const sentence = why.charAt(0).toUpperCase() + why.slice(1);
    reason.replaceChildren(make('b', '', sentence), where === '' ? '.' : `; ${where}.`);
  } else {
    const shortened = shortenedAt(items[index], state.budget);
    const sentence = `Shortened to ${tokens(shortened ?? 0)} of ${tokens(items[index].tokens)} tokens`;
    reason.replaceChildren(...(shortened === undefined ? [] : [make('b', '', sentence), '.']));
  }
  return made;
}

/** @param {number} index */
function makeRow(index) {
  const item = items[index];
  const made = view.row.content.firstElementChild?.cloneNode(true);
  if (!(made instanceof HTMLLIElement)) throw new Error('the page has no row');
  made.dataset.index = String(index);
  made.style.setProperty('--color', color(item.kind));

  inside(made, '.kind').append(swatch(''), data.kinds[item.kind]);
  if (item.pinned) inside(made, '.kind').append(make('span', 'pin', 'pinned'));
  inside(made, '.number').textContent = `#${index}`;
  inside(made, '.tokens').append(tokens(item.tokens), make('small', '', ' tokens'));
  const score = inside(made, '.score');
  if (item.parts) {
    score.textContent = scoreText(item.score);
    score.setAttribute('aria-label', `Score ${scoreText(item.score)}`);
    score.setAttribute('aria-expanded', 'false');
  } else {
    score.replaceWith(make('span', 'unscored', '–'));
  }

  const shown = excerpt(item.text);
  const start = inside(made, '.excerpt');
  start.textContent = shown === '' ? 'blank' : shown;
  start.classList.toggle('blank', shown === '');
  const details = inside(made, 'details');
  details.addEventListener('toggle', () => fillDetails(made, item), { once: true });

  const strip = stripOf(item);
  if (strip) inside(made, '.strip').append(strip);
  return made;
}

/**
 * Fills in the text and the other fields when the details are first opened.
 * @param {HTMLLIElement} made
 * @param {Item} item
 */
function fillDetails(made, item) {
  inside(made, '.text').textContent = visible(item.text);
  /** @type {[string, string][]} */
  const facts = [...item.facts, [data.exact ? 'included at' : 'included at (sampled)', budgetsOf(item)]];
  if (item.rank !== undefined) facts.unshift(['rank', `${tokens(item.rank + 1)} of ${tokens(data.ranked)}`]);
  inside(made, '.facts').append(
    ...facts.flatMap(([name, value]) => {
      const described = make('dd', '', visible(value));
      described.dir = 'auto';
      return [make('dt', '', visible(name)), described];
    }),
  );
}

/**
 * Draws the budgets that include an item.
 * @param {Item} item
 */
function stripOf(item) {
  if (item.intervals.length === 0) return undefined;
  const WIDTH = 1000;
  const scale = WIDTH / (Number(last) + 1);
  let path = '';
  let [start, end] = [-1, -1];
  const draw = () => {
    if (end > start) path += `M${start.toFixed(1)} 0H${end.toFixed(1)}V1H${start.toFixed(1)}Z`;
  };
  for (const [from, to] of item.intervals) {
    const [left, right] = [Number(from) * scale, (Number(to) + 1) * scale];
    if (left > end + 1) {
      draw();
      start = left;
    }
    end = Math.max(right, start + 2);
  }
  draw();
  const SVG = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', `0 0 ${WIDTH} 1`);
  svg.setAttribute('preserveAspectRatio', 'none');
  const shape = document.createElementNS(SVG, 'path');
  shape.setAttribute('d', path);
  svg.append(shape);
  return svg;
}

function drawLists() {
  hideParts();
  const members = windowAt(state.budget);
  const inWindow = new Set(members);
  drawList('window', members, 'Nothing fits this budget.');
  drawList('out', data.by_score.filter((index) => !inWindow.has(index)), 'Everything is in.');
  return members;
}

let waiting = false;

/** Draws once per frame. */
function draw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    drawControls();
    drawBudget(drawLists());
  });
}

/* ---- the parts of a score ---- */

/** @type {{button: HTMLElement, held: boolean} | undefined} */
let open;
let closing = 0;

/**
 * @param {HTMLElement} button
 * @param {boolean} held whether it stays open until it is closed
 */
function showParts(button, held) {
  clearTimeout(closing);
  if (open?.button !== button) {
    hideParts();
    fillParts(Number(button.closest('li')?.dataset.index));
  }
  open = { button, held };
  button.setAttribute('aria-describedby', view.parts.id);
  button.setAttribute('aria-expanded', 'true');
  view.parts.hidden = false;
  moveParts();
}

function hideParts() {
  clearTimeout(closing);
  open?.button.removeAttribute('aria-describedby');
  open?.button.setAttribute('aria-expanded', 'false');
  open = undefined;
  view.parts.hidden = true;
}

function moveParts() {
  if (!open) return;
  const GAP = 4;
  const at = open.button.getBoundingClientRect();
  const own = view.parts.getBoundingClientRect();
  const below = at.bottom + GAP + own.height <= innerHeight;
  const left = Math.min(at.right, document.documentElement.clientWidth - 2 * GAP) - own.width;
  view.parts.style.left = `${Math.max(2 * GAP, left)}px`;
  view.parts.style.top = `${below ? at.bottom + GAP : Math.max(GAP, at.top - GAP - own.height)}px`;
}

/** @param {number} index */
function fillParts(index) {
  const item = items[index];
  if (!item?.parts) return;
  const [shape, scores] = item.parts;
  const nodes = data.scorers[shape];
  const weighted = nodes.some((node) => node.weight !== undefined);
  const headings = weighted ? ['scorer', 'score', 'weight', 'adds'] : ['scorer', 'score'];
  const head = make('tr', '', ...headings.map((heading) => make('th', '', heading)));
  const body = nodes.map((node, place) => {
    const name = make('th', '', node.name.replace(/Scorer$/, '') || node.name);
    name.scope = 'row';
    name.style.setProperty('--depth', String(node.depth));
    const cells = [scoreText(scores[place])];
    if (weighted) {
      const { weight } = node;
      cells.push(weight === undefined ? '' : `× ${weight.toFixed(2)}`);
      cells.push(weight === undefined ? '' : scoreText(scores[place] * weight));
    }
    return make('tr', '', name, ...cells.map((cell) => make('td', '', cell)));
  });
  const rank = item.rank === undefined ? 'not ranked' : `rank ${tokens(item.rank + 1)} of ${tokens(data.ranked)}`;
  view.parts.replaceChildren(
    make('table', '', make('thead', '', head), make('tbody', '', ...body)),
    make('p', '', rank),
  );
}

/** @param {EventTarget | null} from */
function scoreButton(from) {
  const button = from instanceof Element ? from.closest('button.score') : null;
  return button instanceof HTMLElement ? button : null;
}

/* ---- events ---- */

/** @param {bigint} budget */
function choose(budget) {
  const clamped = budget < 0n ? 0n : budget > last ? last : budget;
  state.budget = data.exact ? clamped : stops[Math.max(0, countUpTo(stops, (stop) => stop, clamped) - 1)];
  state.shown = { window: PAGE, out: PAGE };
  draw();
}

/** @param {number} steps */
function move(steps) {
  const place = countUpTo(stops, (stop) => stop, state.budget) - 1 + steps;
  if (place >= 0 && place < stops.length) choose(stops[place]);
}

function start() {
  document.title = `${data.title} – context window`;
  element('title', HTMLElement).textContent = data.title;
  element('last', HTMLElement).textContent = tokens(last);
  const all = items.reduce((sum, item) => sum + (item.tokens > 0 ? BigInt(item.tokens) : 0n), 0n);
  const facts = [`budget ${tokens(target)}`];
  if (given.max > given.target) facts.push(`window ${tokens(given.max)}`);
  if (given.reserve > 0) facts.push(`${tokens(given.reserve)} reserved for the answer`);
  for (const [kind, slot] of given.slots) facts.push(`${tokens(slot)} reserved for ${kind}`);
  if (given.margin > 0) facts.push(`a safety margin of ${given.margin} %`);
  element('facts', HTMLElement).textContent =
    `${tokens(items.length)} candidates with ${tokens(all)} tokens; ${facts.join(', ')}.`;

  view.slider.max = String(data.exact ? last : stops.length - 1);
  view.exact.max = String(last);
  view.slider.addEventListener('input', () => {
    const value = Math.round(Number(view.slider.value));
    choose(data.exact ? BigInt(value) : stops[value]);
  });
  view.exact.addEventListener('change', () => {
    const digits = view.exact.value.split('.')[0];
    choose(/^-?\d+$/.test(digits) ? BigInt(digits) : state.budget);
  });
  view.previous.addEventListener('click', () => move(-1));
  view.next.addEventListener('click', () => move(1));
  view.reset.addEventListener('click', () => {
    choose(target);
    view.slider.focus();
  });

  view.search.form?.addEventListener('submit', (event) => event.preventDefault());
  view.search.addEventListener('input', () => {
    state.query = view.search.value.toLowerCase();
    state.shown = { window: PAGE, out: PAGE };
    draw();
  });
  view.kinds.append(...data.kinds.map(kindButton));
  for (const name of /** @type {const} */ (['window', 'out'])) {
    element(`${name}-more`, HTMLButtonElement).addEventListener('click', () => {
      state.shown[name] += PAGE;
      draw();
    });
  }

  document.addEventListener('pointerover', (event) => {
    const button = scoreButton(event.target);
    if (button && event.pointerType === 'mouse' && !open?.held) showParts(button, false);
    else if (event.target instanceof Node && view.parts.contains(event.target)) clearTimeout(closing);
  });
  document.addEventListener('pointerout', (event) => {
    const left = scoreButton(event.target) ?? (event.target instanceof Node && view.parts.contains(event.target));
    if (left && open && !open.held && document.activeElement !== open.button) {
      clearTimeout(closing);
      closing = setTimeout(hideParts, 150);
    }
  });
  document.addEventListener('focusin', (event) => {
    const button = scoreButton(event.target);
    if (button) showParts(button, open?.button === button && open.held);
  });
  document.addEventListener('focusout', (event) => {
    if (scoreButton(event.target)) hideParts();
  });
  document.addEventListener('click', (event) => {
    const button = scoreButton(event.target);
    if (button && !(open?.button === button && open.held)) showParts(button, true);
    else if (!(event.target instanceof Node && view.parts.contains(event.target))) hideParts();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') hideParts();
  });
  addEventListener('scroll', moveParts, { capture: true, passive: true });
  addEventListener('resize', moveParts);
  draw();
}

/**
 * @param {string} label
 * @param {number} kind
 */
function kindButton(label, kind) {
  const count = items.filter((item) => item.kind === kind).length;
  const button = make('button', '', swatch('', color(kind)), label, make('span', 'n', tokens(count)));
  button.type = 'button';
  button.setAttribute('aria-pressed', 'false');
  button.addEventListener('click', () => {
    if (!state.kinds.delete(kind)) state.kinds.add(kind);
    button.setAttribute('aria-pressed', String(state.kinds.has(kind)));
    state.shown = { window: PAGE, out: PAGE };
    draw();
  });
  return button;
}

start();
