
/* ---- lists.js: the window and the excluded items in short ---- */

/**
 * Returns the entry of a card in a list: one row per member.
 * @param {number[]} card
 */
function makeEntryOfList(card) {
  const made = make('li', 'card', ...card.map((index) => makeRow(index)));
  const strip = stripOf(items[card[0]]);
  if (strip) made.append(strip);
  return made;
}

/**
 * @param {HTMLElement} made
 * @param {number[]} card
 */
function updateIncluded(made, card) {
  card.forEach((index, place) => updateRow(made.children[place], formAt(items[index], state.budget)));
}

/**
 * @param {HTMLElement} made
 * @param {number[]} card
 */
function updateExcluded(made, card) {
  card.forEach((index, place) => updateRow(made.children[place], undefined));
  const item = items[card[0]];
  const reason = made.querySelector(':scope > .reason');
  if (reason instanceof HTMLElement) setReason(reason, item);
  else made.children[card.length - 1].after(reasonOf(item));
}

/**
 * Returns the entry of a shortened item: its tokens now and before, why it was cut, and its text with what is missing.
 * @param {Shortened} entry
 */
function makeShortened({ index, form }) {
  const item = items[index];
  const lines = form === undefined ? undefined : item.forms?.[form]?.[1];
  const fill = (/** @type {HTMLElement} */ details) => {
    details.append(lines ? comparedText(item, lines) : fullText(item), ...(item.calls ?? []).map(callOf));
  };
  const row = makeRow(index, fill);
  updateRow(row, form);
  return make('li', 'card', row, cutOf(item, form));
}

/**
 * A row: who wrote it, its tokens and the start of its text, which opens to show all of it.
 * @param {number} index
 * @param {(details: HTMLElement, item: Item) => void} [fill]
 */
function makeRow(index, fill = fillDetails) {
  const item = items[index];
  const head = make('div', 'head', roleOf(item), make('span', 'number', `#${index}`));
  if (item.pinned) head.append(pinOf(item));
  head.append(make('span', 'tokens'));
  if (!data.is_chat) head.append(scoreOf(item));
  const shown = excerpt(wholeText(item));
  const start = makeText('span', shown === '' ? 'excerpt blank' : 'excerpt', shown === '' ? 'blank' : shown);
  const details = make('details', '', make('summary', '', start));
  details.addEventListener('toggle', () => fill(details, item), { once: true });
  const made = make('div', `row ${colorClass(item.label)}`, head, details);
  made.classList.toggle('result', item.answers !== undefined);
  made.dataset.index = String(index);
  made.dataset.form = 'none';
  return made;
}

/**
 * @param {Element} made
 * @param {number | undefined} form
 */
function updateRow(made, form) {
  if (!(made instanceof HTMLElement) || made.dataset.form === String(form)) return;
  made.dataset.form = String(form);
  const shown = made.querySelector('.tokens');
  if (shown instanceof HTMLElement) setTokens(shown, items[Number(made.dataset.index)], form);
}

/** @param {Item} item */
function scoreOf(item) {
  const score = make('span', 'score', item.parts ? scoreText(item.score) : '–');
  score.title = 'Score';
  return score;
}

/**
 * Fills in the text, the parts of the score and the other fields when a row is first opened.
 * @param {HTMLElement} details
 * @param {Item} item
 */
function fillDetails(details, item) {
  if (item.text !== '' || !item.calls) details.append(fullText(item));
  details.append(...(item.calls ?? []).map(callOf));
  /** @type {[string, string][]} */
  const facts = [...(item.facts ?? []), [data.exact ? 'included at' : 'included at (sampled)', budgetsOf(item)]];
  if (item.cut) facts.unshift([`cut, budget ${tokens(target)}`, item.cut]);
  if (item.rank !== undefined) facts.unshift(['rank', `${tokens(item.rank + 1)} of ${tokens(data.ranked)}`]);
  if (item.parts && item.parts[1].length === 1) facts.unshift(['score', scoreText(item.score)]);
  const list = make('dl', 'facts');
  for (const [name, value] of facts) list.append(make('dt', '', visible(name)), makeText('dd', '', value));
  details.append(list);
  if (item.parts && item.parts[1].length > 1) details.append(scoreTable(item.parts));
}

/**
 * Returns the parts of a score as a table.
 * @param {[number, number[]]} parts
 */
function scoreTable([shape, scores]) {
  const nodes = data.scorers[shape];
  const weighted = nodes.some((node) => node.weight !== undefined);
  const headings = weighted ? ['scorer', 'score', 'weight', 'adds'] : ['scorer', 'score'];
  const cell = (/** @type {string} */ heading) => {
    const made = make('th', '', heading);
    made.scope = 'col';
    return made;
  };
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
    return make('tr', '', name, ...cells.map((text) => make('td', '', text)));
  });
  const head = make('tr', '', ...headings.map(cell));
  return make('table', 'parts', make('thead', '', head), make('tbody', '', ...body));
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
  const svg = makeSvg('svg', '');
  svg.setAttribute('viewBox', `0 0 ${WIDTH} 1`);
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.append(makeSvg('path', '', path));
  const strip = make('div', 'strip');
  strip.setAttribute('aria-hidden', 'true');
  strip.append(svg);
  return strip;
}
