
/* ---- main.js: the state of the page, and its events ---- */

/** @typedef {'transcript' | 'window' | 'shortened' | 'out'} Tab */
/** @typedef {{index: number, form: number | undefined}} Shortened a shortened item, and its form */

const state = {
  budget: target,
  /** Why the last budget was refused. */
  refused: '',
  /** @type {Set<number>} */
  labels: new Set(),
  /** Whether only shortened items are shown. */
  isShortenedOnly: false,
  query: '',
  /** @type {Tab} */
  tab: data.is_chat ? 'transcript' : 'window',
  shown: { transcript: PAGE, window: PAGE, shortened: PAGE, out: PAGE },
};

const view = {
  result: element('result', HTMLOutputElement),
  spoken: element('spoken', HTMLElement),
  bar: element('bar', HTMLElement),
  legend: element('legend', HTMLElement),
  slider: element('slider', HTMLInputElement),
  exact: element('exact', HTMLInputElement),
  previous: element('previous', HTMLButtonElement),
  next: element('next', HTMLButtonElement),
  reset: element('reset', HTMLButtonElement),
  notice: element('notice', HTMLElement),
  search: element('search', HTMLInputElement),
  labels: element('labels', HTMLElement),
  shortenedOnly: element('shortened-only', HTMLButtonElement),
};

/** The excluded items have a place of their own here, and no tab. */
const wide = matchMedia('(min-width: 64rem)');

/** @type {Tab[]} */
const TABS = ['transcript', 'window', 'shortened', 'out'];
const keyOfCard = (/** @type {number[]} */ card) => card.join();
const lists = {
  transcript: new KeyedList(element('transcript', HTMLElement), (/** @type {Entry} */ entry) => entry.key, makeEntry, updateEntry),
  window: new KeyedList(element('window', HTMLElement), keyOfCard, makeEntryOfList, updateIncluded),
  shortened: new KeyedList(
    element('shortened', HTMLElement),
    (/** @type {Shortened} */ { index, form }) => `${index} ${form}`,
    makeShortened,
    () => {},
  ),
  out: new KeyedList(element('out', HTMLElement), keyOfCard, makeEntryOfList, updateExcluded),
};

/** @type {string[]} */
const searchable = new Array(items.length);

function isFiltered() {
  return state.labels.size > 0 || state.isShortenedOnly || state.query !== '';
}

/** @param {number} index */
function isShown(index) {
  if (state.labels.size > 0 && !state.labels.has(items[index].label)) return false;
  if (state.isShortenedOnly && !shortened.has(index)) return false;
  if (state.query === '') return true;
  searchable[index] ??= wholeText(items[index]).toLowerCase();
  return searchable[index].includes(state.query);
}

/**
 * Shows the first entries of a list.
 * @template T
 * @param {Tab} name
 * @param {KeyedList<T>} list
 * @param {T[]} entries
 * @param {string} whenEmpty
 */
function drawList(name, list, entries, whenEmpty) {
  list.show(entries.slice(0, state.shown[name]));
  const empty = element(`${name}-empty`, HTMLElement);
  empty.hidden = entries.length > 0;
  empty.textContent = isFiltered() ? 'Nothing here matches the filter.' : whenEmpty;
  const more = element(`${name}-more`, HTMLButtonElement);
  const left = entries.length - state.shown[name];
  more.hidden = left <= 0;
  more.textContent = `Show more (${tokens(Math.max(0, left))} left)`;
}

/**
 * @param {string} id
 * @param {number[]} members
 */
function drawCount(id, members) {
  const shown = isFiltered() ? members.filter(isShown).length : members.length;
  const all = tokens(members.length);
  for (const count of document.querySelectorAll(`.${id}-count`)) {
    count.textContent = shown === members.length ? all : `${tokens(shown)} of ${all}`;
  }
}

/**
 * The shortened items of the window.
 * @type {Set<number>}
 */
let shortened = new Set();

function drawLists() {
  const { budget } = state;
  const members = windowAt(budget);
  const cuts = shortenedOf(members, budget);
  shortened = new Set(cuts.map(({ index }) => index));
  const less = tokens(cuts.reduce((sum, cut) => sum + cut.saved, 0n));
  const saved = `${counted(cuts.length)} ${cuts.length === 1 ? 'is' : 'are'} shortened, by ${less} tokens in total`;
  const markers = markersAt(state.budget);
  const inWindow = new Set(members);
  const excluded = data.by_score.filter((index) => !inWindow.has(index));
  drawCount('window', members);
  drawCount('shortened', [...shortened]);
  element('saved', HTMLElement).textContent = cuts.length > 0 ? `${saved}. Largest cut first.` : '';
  drawCount('out', excluded);
  const isVisible = (/** @type {Tab} */ tab) => state.tab === tab || (tab === 'out' && wide.matches);
  const shownCards = (/** @type {number[]} */ list) => groupedCards(list).filter((card) => card.some(isShown));
  if (isVisible('transcript')) drawList('transcript', lists.transcript, entriesOf(members, markers), 'Nothing fits this budget.');
  if (isVisible('window')) drawList('window', lists.window, shownCards(members), 'Nothing fits this budget.');
  if (isVisible('shortened')) {
    const entries = cuts.filter(({ index }) => isShown(index)).map(({ index }) => ({ index, form: formAt(items[index], budget) }));
    drawList('shortened', lists.shortened, entries, 'Nothing is shortened: what is in is complete.');
  }
  const complete = cuts.length > 0 ? `Nothing is left out, but ${saved}.` : 'Everything is in, in full.';
  if (isVisible('out')) drawList('out', lists.out, shownCards(excluded), complete);
  return { members, markers };
}

/**
 * Returns the cards of a list, each at the place of its first member, with its members in input order.
 * @param {number[]} list
 */
function groupedCards(list) {
  if (!data.is_chat) return cardsOf(list);
  /** @type {Map<number, number[]>} */
  const cards = new Map();
  for (const index of list) {
    const group = items[index].group ?? index;
    const card = cards.get(group);
    if (card) card.push(index);
    else cards.set(group, [index]);
  }
  return [...cards.values()].map((card) => card.sort((a, b) => a - b));
}

let isWaiting = false;

/** Draws once per frame. */
function draw() {
  if (isWaiting) return;
  isWaiting = true;
  requestAnimationFrame(() => {
    isWaiting = false;
    drawControls();
    const { members, markers } = drawLists();
    drawBudget(members, markers);
    drawHistory();
    markMatches();
  });
}

/** Highlights the matches of the search in the texts that are shown. */
function markMatches() {
  if (!('highlights' in CSS)) return;
  CSS.highlights.delete('match');
  const { query } = state;
  if (query === '') return;
  const found = new Highlight();
  const texts = document.createTreeWalker(element('panels', HTMLElement), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    const text = (node.nodeValue ?? '').toLowerCase();
    // A few letters have a lower case of another length.
    if (text.length !== node.nodeValue?.length) continue;
    for (let at = text.indexOf(query); at >= 0; at = text.indexOf(query, at + query.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + query.length);
      found.add(range);
    }
  }
  CSS.highlights.set('match', found);
}

function drawFromStart() {
  state.shown = { transcript: PAGE, window: PAGE, shortened: PAGE, out: PAGE };
  draw();
}

/** @param {Tab} tab */
function selectTab(tab) {
  state.tab = tab;
  for (const name of TABS) {
    const button = element(`tab-${name}`, HTMLButtonElement);
    const isSelected = name === tab;
    button.setAttribute('aria-selected', String(isSelected));
    button.tabIndex = isSelected ? 0 : -1;
    button.hidden = name === 'out' && wide.matches;
    element(`panel-${name}`, HTMLElement).hidden = !isSelected && !(name === 'out' && wide.matches);
  }
  draw();
}

/** @param {KeyboardEvent} event */
function moveTab(event) {
  const tabs = TABS.filter((name) => !element(`tab-${name}`, HTMLButtonElement).hidden);
  const at = tabs.indexOf(state.tab);
  const places = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 };
  if (!(event.key in places)) return;
  event.preventDefault();
  const place = places[/** @type {keyof typeof places} */ (event.key)];
  const tab = tabs.at(place % tabs.length) ?? state.tab;
  selectTab(tab);
  element(`tab-${tab}`, HTMLButtonElement).focus();
}

function startTabs() {
  for (const name of TABS) {
    element(`tab-${name}`, HTMLButtonElement).addEventListener('click', () => selectTab(name));
    const more = element(`${name}-more`, HTMLButtonElement);
    const showMore = () => {
      state.shown[name] += PAGE;
      draw();
    };
    more.addEventListener('click', showMore);
    new IntersectionObserver((seen) => seen.some((entry) => entry.isIntersecting) && showMore(), {
      rootMargin: '600px',
    }).observe(more);
  }
  element('tabs', HTMLElement).addEventListener('keydown', moveTab);
  wide.addEventListener('change', () => selectTab(wide.matches && state.tab === 'out' ? 'transcript' : state.tab));
  selectTab(state.tab);
}

function startBudget() {
  view.slider.min = String(data.exact ? least : 0);
  view.slider.max = String(data.exact ? last : stops.length - 1);
  view.slider.addEventListener('input', () => {
    const value = Math.round(Number(view.slider.value));
    choose(data.exact ? BigInt(value) : stops[value]);
  });
  view.exact.addEventListener('change', () => {
    const digits = view.exact.value.replace(/[\s,_]/g, '').split('.')[0];
    choose(/^-?\d+$/.test(digits) ? BigInt(digits) : state.budget);
  });
  view.previous.addEventListener('click', () => move(-1));
  view.next.addEventListener('click', () => move(1));
  view.reset.addEventListener('click', () => {
    choose(target);
    view.slider.focus();
  });
}

function startFilters() {
  view.search.form?.addEventListener('submit', (event) => event.preventDefault());
  // What opens shows more text.
  element('panels', HTMLElement).addEventListener('toggle', () => requestAnimationFrame(markMatches), { capture: true });
  element('panels', HTMLElement).addEventListener('click', () => requestAnimationFrame(markMatches));
  view.search.addEventListener('input', () => {
    state.query = view.search.value.toLowerCase();
    drawFromStart();
  });
  data.labels.forEach(({ name }, label) => {
    const count = items.filter((item) => item.label === label).length;
    const toggle = () => {
      if (!state.labels.delete(label)) state.labels.add(label);
      button.setAttribute('aria-pressed', String(state.labels.has(label)));
      drawFromStart();
    };
    const button = makeButton('', toggle, swatch(colorClass(label)), name, make('span', 'n', tokens(count)));
    button.setAttribute('aria-pressed', 'false');
    view.labels.append(button);
  });
  view.shortenedOnly.hidden = !items.some((item) => item.forms || item.original !== undefined);
  view.shortenedOnly.addEventListener('click', () => {
    state.isShortenedOnly = !state.isShortenedOnly;
    view.shortenedOnly.setAttribute('aria-pressed', String(state.isShortenedOnly));
    drawFromStart();
  });
}

function startTexts() {
  const name = data.title.split(/[\\/]/).at(-1) || data.title;
  document.title = `${name} – context window`;
  element('title', HTMLElement).textContent = name;
  element('last', HTMLElement).textContent = tokens(last);
  const all = items.reduce((sum, item) => sum + (item.tokens > 0 ? BigInt(item.tokens) : 0n), BigInt(data.overhead));
  const facts = [`given budget ${tokens(target)}`];
  if (given.max > given.target) facts.push(`window ${tokens(given.max)}`);
  if (given.reserve > 0) facts.push(`${tokens(given.reserve)} reserved for the answer`);
  for (const [kind, slot] of given.slots) facts.push(`${tokens(slot)} reserved for ${kind}`);
  if (given.margin > 0) facts.push(`a safety margin of ${given.margin} %`);
  element('facts', HTMLElement).textContent =
    `${counted(items.length)} with ${tokens(all)} tokens; ${facts.join(', ')}.`;

  const { policy, model, counter, format: shape, date, version } = data.about;
  /** @type {[string, string | undefined][]} */
  const about = [
    ['policy', policy],
    ['model', model],
    ['tokens', counter],
    ['budget', tokens(target)],
    ['format', shape],
    ['date', date],
    ['cupel', version],
  ];
  for (const [term, value] of about) {
    if (value) element('about', HTMLElement).append(make('div', '', make('dt', '', term), makeText('dd', '', value)));
  }
}

startTexts();
element('history', HTMLDetailsElement).open = wide.matches;
startBudget();
startFilters();
startTabs();
