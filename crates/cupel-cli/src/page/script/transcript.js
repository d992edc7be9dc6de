
/* ---- transcript.js: the window as the model gets it ---- */

/**
 * A part of the transcript: messages of one group, messages that are left out, or a message in their place.
 * @typedef {{key: string, card: number[]} | {key: string, gap: number[]} | {key: string, marker: Marker}} Entry
 */

/**
 * Returns the parts of the transcript in order. The messages that are left out are between those of the
 * window only if these are in input order.
 * @param {number[]} members
 * @param {Map<number, Marker>} markers
 * @returns {Entry[]}
 */
function entriesOf(members, markers) {
  /** @type {Entry[]} */
  const entries = [];
  let next = 0;
  /** @param {number} end */
  const addGap = (end) => {
    const gap = [];
    for (let index = next; index < end; index += 1) if (isShown(index)) gap.push(index);
    if (gap.length > 0) entries.push({ key: `gap ${next}`, gap });
  };
  for (const card of cardsOf(members)) {
    if (data.is_chat) {
      addGap(card[0]);
      const marker = markers.get(card[0]);
      if (marker && !isFiltered()) entries.push({ key: `marker ${card[0]}`, marker });
      next = card[card.length - 1] + 1;
    }
    if (card.some(isShown)) entries.push({ key: `card ${card.join()}`, card });
  }
  if (data.is_chat) addGap(items.length);
  return entries;
}

/** @param {Entry} entry */
function makeEntry(entry) {
  if ('card' in entry) return make('li', 'card', ...entry.card.map(makeMessage));
  if ('gap' in entry) return makeGap();
  return make('li', 'marker');
}

/**
 * @param {HTMLElement} made
 * @param {Entry} entry
 */
function updateEntry(made, entry) {
  if ('card' in entry) {
    for (const message of made.children) {
      updateMessage(message, formAt(items[Number(/** @type {HTMLElement} */ (message).dataset.index)], state.budget));
    }
  } else if ('gap' in entry) {
    updateGap(made, entry.gap);
  } else {
    const { role, text, omitted, tokens: size, merged_into: into } = entry.marker;
    const where = into === null ? 'added' : `added to #${into}`;
    made.replaceChildren(
      make('span', 'role', swatch('added'), role),
      makeText('span', 'text', text),
      make('span', 'quiet', `${where} in the place of ${counted(omitted)}, ${tokens(size)} tokens`),
    );
  }
}

/** @type {WeakMap<HTMLElement, number[]>} */
const gaps = new WeakMap();

function makeGap() {
  const summary = make('summary', '', make('span', 'label'));
  const details = make('details', '', summary);
  const made = make('li', 'gap', details);
  details.addEventListener('toggle', () => fillGap(made));
  return made;
}

/**
 * @param {HTMLElement} made
 * @param {number[]} gap
 */
function updateGap(made, gap) {
  gaps.set(made, gap);
  const size = gap.reduce((sum, index) => sum + BigInt(items[index].tokens), 0n);
  const label = made.querySelector('.label');
  label?.replaceChildren(make('b', '', `${counted(gap.length)} left out`), make('span', 'quiet', ` ${tokens(size)} tokens`));
  fillGap(made);
}

/**
 * Shows the messages of an open gap.
 * @param {HTMLElement} made
 */
function fillGap(made) {
  const details = made.querySelector('details');
  const gap = gaps.get(made);
  if (!details?.open || !gap) return;
  const { budget } = state;
  const content = `${budget} ${gap.join()}`;
  if (made.dataset.content === content) return;
  made.dataset.content = content;
  let shown = 0;
  const list = make('ol', 'cards');
  const more = makeButton('more', () => add());
  const cards = cardsOf(gap);
  const add = () => {
    for (const card of cards.slice(shown, shown + PAGE)) {
      const messages = card.map(makeMessage);
      for (const message of messages) updateMessage(message, undefined);
      list.append(make('li', 'card out', reasonOf(items[card[0]]), ...messages));
    }
    shown += PAGE;
    more.hidden = shown >= cards.length;
    more.textContent = `Show more (${tokens(Math.max(0, cards.length - shown))} left)`;
  };
  add();
  details.replaceChildren(details.children[0], list, more);
}

/** @param {Item} item */
function reasonOf(item) {
  const reason = make('p', 'reason');
  setReason(reason, item);
  return reason;
}

/**
 * Says why an item is out.
 * @param {HTMLElement} parent
 * @param {Item} item
 */
function setReason(parent, item) {
  const [why, where] = reasonAt(item, state.budget);
  parent.replaceChildren(make('b', '', capitalized(why)), where === '' ? '.' : `; ${where}.`);
}
