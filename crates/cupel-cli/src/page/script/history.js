
/* ---- history.js: the cuts over time ---- */

/** The most cuts with a mark above the chart. */
const MARKS = 40;

/**
 * Draws the tokens of each request at a budget, with its cuts and the budget as a line.
 */
function drawHistory() {
  const cuts = cutsAt(state.budget);
  const panel = element('history', HTMLDetailsElement);
  panel.hidden = cuts === undefined || cuts.requests < 2;
  if (cuts === undefined || panel.hidden) return;
  const count = counted(cuts.made.length, 'cut');
  element('history-title', HTMLElement).textContent = `${count} in ${counted(cuts.requests, 'request')}`;
  const key = String(state.budget);
  if (panel.dataset.budget === key) return;
  panel.dataset.budget = key;
  const made = new Map(cuts.made.map((cut) => [cut[0], cut]));
  const most = Math.max(Number(cuts.budget), ...cuts.made.map((cut) => Number(cut[2])), ...cuts.tokens.map((point) => Number(point[1])));
  const x = (/** @type {number} */ request) => (100 * (request - 1)) / (cuts.requests - 1);
  const y = (/** @type {Int} */ size) => 100 - (94 * Number(size)) / most;
  const at = (/** @type {number} */ request, /** @type {Int} */ size) => `${x(request).toFixed(2)} ${y(size).toFixed(2)}`;
  /** @type {string[]} */
  const points = [];
  let drops = '';
  for (const [request, size] of cuts.tokens) {
    const cut = made.get(request);
    if (cut) {
      points.push(at(request, cut[2]));
      drops += `M${at(request, cut[2])}L${at(request, cut[3])}`;
    }
    points.push(at(request, size));
  }
  const line = `M${points.join('L')}`;
  const limit = y(cuts.budget).toFixed(2);
  const svg = makeSvg('svg', 'chart');
  svg.setAttribute('viewBox', '0 0 100 100');
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', historyText(cuts));
  svg.append(
    makeSvg('path', 'area', `${line}L100 100L0 100Z`),
    makeSvg('path', 'limit', `M0 ${limit}H100`),
    makeSvg('path', 'line', line),
    makeSvg('path', 'drop', drops),
  );
  const marks = cuts.made.length > MARKS ? [] : cuts.made.map((cut) => {
    const mark = make('span', 'mark', '▾');
    mark.style.left = `${x(cut[0])}%`;
    mark.style.top = `${y(cut[2])}%`;
    mark.title = cutText(cut);
    return mark;
  });
  for (const mark of marks) mark.setAttribute('aria-hidden', 'true');
  const plot = make('div', 'plot', ...marks);
  plot.prepend(svg);
  const axis = make(
    'div',
    'axis quiet',
    make('span', '', 'request 1'),
    make('span', '', make('i', 'dashes'), `budget ${tokens(cuts.budget)}`),
    make('span', '', `request ${tokens(cuts.requests)}`),
  );
  axis.setAttribute('aria-hidden', 'true');
  const rows = cuts.made.map((cut) => {
    const number = make('th', '', tokens(cut[0]));
    number.scope = 'row';
    return make('tr', '', number, ...cut.slice(1).map((value) => make('td', '', tokens(value))));
  });
  const head = make('tr', '', ...['request', 'messages', 'tokens before', 'after'].map((heading) => {
    const cell = make('th', '', heading);
    cell.scope = 'col';
    return cell;
  }));
  const table = make('table', 'parts', make('thead', '', head), make('tbody', '', ...rows));
  const list = make('details', 'list', make('summary', '', 'The cuts as a table'), table);
  list.open = panel.querySelector('.list')?.hasAttribute('open') ?? false;
  const isOver = cuts.tokens.some(([, size]) => size > cuts.budget);
  const note = make(
    'p',
    'quiet',
    'Tokens of each request without system messages, pinned ones and the request overhead. A cut shortens or drops the oldest messages. ',
    isOver ? 'A request above the budget was shortened further for itself alone. ' : '',
    'Each budget has cuts of its own, so a larger one may keep less.',
  );
  element('history-body', HTMLElement).replaceChildren(plot, axis, note, ...(rows.length > 0 ? [list] : []));
}

/** @param {Cut} cut */
function cutText([request, messages, before, after]) {
  return `request ${tokens(request)}, ${counted(messages, 'message')}: from ${tokens(before)} to ${tokens(after)} tokens`;
}

/**
 * Says what the chart shows.
 * @param {Cuts} cuts
 */
function historyText(cuts) {
  const LONGEST = 6;
  const listed = cuts.made.slice(0, LONGEST).map(cutText).join('; ');
  const more = cuts.made.length > LONGEST ? `; and ${counted(cuts.made.length - LONGEST, 'more cut')}` : '';
  const made = cuts.made.length > 0 ? `cuts at ${listed}${more}` : 'no cuts';
  return `Tokens of ${counted(cuts.requests, 'request')}, with a budget of ${tokens(cuts.budget)}: ${made}.`;
}

/**
 * @param {'svg' | 'path'} name
 * @param {string} className
 * @param {string} [path]
 */
function makeSvg(name, className, path) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  made.setAttribute('class', className);
  if (path !== undefined) made.setAttribute('d', path);
  return made;
}
