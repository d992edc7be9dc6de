
/* ---- transcript.js: the window as the model gets it ---- */

/**
 * A part of the transcript: messages of one group, messages that are left out, a message in their place, or a line about
 * the prompt cache.
 * @typedef {{key: string, card: number[]} | {key: string, gap: number[]} | {key: string, marker: Marker} | {key: string, line: string}} Entry
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
  const shared = isFiltered() ? undefined : sharedAt(state.budget);
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
    if (shared && card.includes(shared[0])) entries.push({ key: 'shared', line: sharedLine(shared, members, markers) });
  }
  if (data.is_chat) addGap(items.length);
  const cuts = isFiltered() || members.length === 0 ? undefined : cutsAt(state.budget);
  if (cuts && cuts.made.length > 0) entries.push({ key: 'next', line: nextLine(cuts) });
  return entries;
}

/**
 * Says what the window shares with the previous request, so that a prompt cache can read it.
 * @param {Shared} shared
 * @param {number[]} members
 * @param {Map<number, Marker>} markers
 */
function sharedLine([index, size], members, markers) {
  let all = tokensOf(members, state.budget) + BigInt(data.overhead);
  for (const marker of markers.values()) all += BigInt(marker.tokens);
  const share = Math.round((100 * Number(size)) / Number(all));
  return `Up to #${index} the previous request was the same: a prompt cache can read ${tokens(size)} of ${tokens(all)} tokens (${share} %).`;
}

/**
 * Says what the next request shares with the window.
 * @param {Cuts} cuts
 */
function nextLine(cuts) {
  const head = cuts.head === null ? 'nothing' : `the head, up to #${cuts.head},`;
  const after = `A cut leaves only ${head} as it is.`;
  if (cuts.next_in === 0) return `The next request probably needs a cut. ${after}`;
  return `The next ${counted(Number(cuts.next_in), 'request')} at the pace so far start with all of this. ${after}`;
}

/** @param {Entry} entry */
function makeEntry(entry) {
  if ('card' in entry) return make('li', 'card', ...entry.card.map(makeMessage));
  if ('gap' in entry) return makeGap();
  if ('line' in entry) return make('li', 'cache');
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
  } else if ('line' in entry) {
    made.replaceChildren(make('span', '', entry.line));
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
