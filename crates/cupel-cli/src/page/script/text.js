
/* ---- text.js: numbers, reasons and texts as they are shown ---- */

const format = new Intl.NumberFormat('en-US');

/** @param {Int} value */
function tokens(value) {
  return format.format(value);
}

/**
 * @param {number} count
 * @param {string} [noun]
 */
function counted(count, noun = unit) {
  return `${format.format(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** @param {number} score */
function scoreText(score) {
  if (!Number.isFinite(score)) return Number.isNaN(score) ? 'NaN' : score > 0 ? '∞' : '−∞';
  return Math.abs(score) < 1000 ? score.toFixed(3) : score.toPrecision(4);
}

/** @param {string} text */
function capitalized(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** @param {string} text */
function visible(text) {
  // Control characters as pictures, so that nothing is silently missing.
  return text
    .replaceAll('\r\n', '\n')
    .replace(/[\u0000-\u0008\u000b-\u001f]/g, (control) => String.fromCharCode(0x2400 + control.charCodeAt(0)))
    .replaceAll('\u007f', '\u2421');
}

/**
 * @param {string} text
 * @param {number} [longest]
 */
function excerpt(text, longest = 240) {
  const start = Array.from(text.slice(0, 4 * longest).replace(/\s+/g, ' ').trim());
  const cut = start.length > longest || text.length > 4 * longest;
  return visible(start.slice(0, longest).join('')) + (cut ? '…' : '');
}

/**
 * Returns the text of an item with its calls, for excerpts and for the search.
 * @param {Item} item
 */
function wholeText(item) {
  const calls = (item.calls ?? []).map(([name, args]) => `${name}(${args})`);
  return [item.text, ...calls].filter((part) => part !== '').join('\n');
}

/**
 * Returns the calls whose results an item contains, such as `read_file`.
 * @param {Item} item
 */
function toolNames(item) {
  const names = (item.answers ?? []).map(([index, call]) => items[index].calls?.[call]?.[0] ?? '');
  return [...new Set(names)].filter((name) => name !== '').join(', ');
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
  return [failureAt(budget) ? 'no window at this budget' : 'left out at this budget', where];
}

/**
 * Returns why the window has a shorter form of an item, and how much shorter it is.
 * @param {Item} item
 * @param {number | undefined} form
 * @returns {[string, string]}
 */
function cutReason(item, form) {
  const full = item.original ?? item.tokens;
  if (form === undefined) return [`shortened from ${tokens(full)} to ${tokens(item.tokens)} tokens`, 'limit for tool results'];
  const [size, , level, step] = /** @type {[Int, Lines[], Int, string | null][]} */ (item.forms)[form];
  const about = `about ${tokens(level)} tokens`;
  const cut = state.budget === target && item.cut ? `, cut ${item.cut}` : '';
  return [
    `shortened from ${tokens(full)} to ${tokens(size)} tokens`,
    (step ? `step for ${step}: ${about} each` : `a form of ${about}`) + cut,
  ];
}

/**
 * @param {Item} item
 * @param {[Int, Int]} next the next interval that includes the item
 */
function included(item, next) {
  if (!data.exact) return `included at a budget of ${tokens(next[0])}`;
  if (next[1] >= data.last) return `included from ${tokens(next[0])} tokens on`;
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

/**
 * A run of lines of a shortened text: kept lines, or a note and the lines it stands for.
 * @typedef {{text: string, omitted?: string}} Piece
 */

/**
 * Returns a shortened text in pieces.
 * @param {Item} item
 * @param {Lines[]} form
 * @returns {Piece[]}
 */
function piecesOf(item, form) {
  const lines = item.text.split('\n');
  /** @type {Piece[]} */
  const pieces = [];
  let next = 0;
  form.forEach((run, place) => {
    if (typeof run !== 'string') {
      const [first, count] = run;
      pieces.push({ text: lines.slice(first, first + count).join('\n') });
      next = first + count;
      return;
    }
    const following = form.slice(place + 1).find((later) => typeof later !== 'string');
    const end = following ? Number(following[0]) : lines.length;
    const isNote = /\bomitted\b/.test(run) && end > next;
    pieces.push(isNote ? { text: run, omitted: lines.slice(next, end).join('\n') } : { text: run });
    if (isNote) next = end;
  });
  return pieces;
}

/**
 * Returns the whole text in pieces: those that a shorter form has, and those that it omits.
 * @param {Item} item
 * @param {Lines[]} form
 */
function comparedWith(item, form) {
  const lines = item.text.split('\n');
  /** @type {{text: string, isOmitted: boolean}[]} */
  const pieces = [];
  let next = 0;
  /** @type {(text: string, isOmitted: boolean) => void} */
  const add = (text, isOmitted) => {
    if (text !== '') pieces.push({ text, isOmitted });
  };
  /** @type {(first: number, end: number, isOmitted: boolean) => void} */
  const addLines = (first, end, isOmitted) => {
    add(lines.slice(first, end).map((line, place) => (first + place + 1 < lines.length ? `${line}\n` : line)).join(''), isOmitted);
  };
  for (const run of form) {
    if (typeof run !== 'string') {
      const [first, count] = run;
      addLines(next, first, true);
      addLines(first, first + count, false);
      next = first + count;
      continue;
    }
    // A note inside a line: the line starts and ends as before.
    const [before, after] = run.split(/\s*\[[^\]]*\bomitted\b[^\]]*\]\s*/);
    const line = lines[next] ?? '';
    const isPart = after !== undefined && before + after !== '' && line.length >= before.length + after.length;
    if (isPart && line.startsWith(before) && line.endsWith(after)) {
      add(before, false);
      add(line.slice(before.length, line.length - after.length), true);
      add(next + 1 < lines.length ? `${after}\n` : after, false);
      next += 1;
    }
  }
  addLines(next, lines.length, true);
  return pieces;
}
