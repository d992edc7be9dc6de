
/* ---- card.js: one message or item ---- */

/**
 * Returns the role or kind of an item with its color and shape.
 * @param {Item} item
 */
function roleOf(item) {
  const tools = toolNames(item);
  const name = make('span', 'role', swatch(colorClass(item.label)), data.labels[item.label].name);
  if (tools !== '') name.append(make('span', 'tool', tools));
  return name;
}

/** @param {Item} item */
function pinOf(item) {
  const pin = make('span', 'pin', 'always kept');
  if (item.pinned) pin.append(make('span', 'why', `: ${item.pinned}`));
  return pin;
}

/**
 * Sets the tokens of an item: as the window of a budget has it, and in full.
 * @param {HTMLElement} parent
 * @param {Item} item
 * @param {number | undefined} form
 */
function setTokens(parent, item, form) {
  const short = form === undefined ? undefined : item.forms?.[form]?.[0];
  const full = item.original ?? item.tokens;
  const size = short ?? item.tokens;
  parent.replaceChildren(tokens(size), make('small', '', size === full ? ' tokens' : ` of ${tokens(full)} tokens`));
}

/**
 * Says why an item is shortened.
 * @param {Item} item
 * @param {number | undefined} form
 */
function cutOf(item, form) {
  const [what, why] = cutReason(item, form);
  return make('p', 'reason', make('b', '', capitalized(what)), `; ${why}.`);
}

/**
 * Returns the call that a tool gets.
 * @param {[string, string]} call
 */
function callOf([name, args]) {
  const code = make('code', 'call', make('b', '', visible(name)));
  code.append(makeText('span', 'args', args));
  return clamped(code, args, [6, 320]);
}

/**
 * Returns an element that shows the start of a long text and a button for the rest.
 * @param {HTMLElement} content
 * @param {string} text
 * @param {[lines: number, characters: number]} [limit] the longest text that is shown in full
 */
function clamped(content, text, [most, characters] = [14, 1000]) {
  const lines = text.split('\n').length;
  if (lines <= most && text.length <= characters) return content;
  const label = lines > most ? `Show all ${counted(lines, 'line')}` : `Show all ${counted(text.length, 'character')}`;
  content.classList.add('clamp');
  const toggle = () => {
    const isClamped = content.classList.toggle('clamp');
    button.textContent = isClamped ? label : 'Show less';
    button.setAttribute('aria-expanded', String(!isClamped));
  };
  const button = makeButton('plain', toggle, label);
  button.setAttribute('aria-expanded', 'false');
  return make('div', 'clamped', content, button);
}

/**
 * Returns the text of an item in full.
 * @param {Item} item
 */
function fullText(item) {
  const isBlank = item.text.trim() === '';
  const text = makeText('div', isBlank ? 'text blank' : 'text', isBlank ? 'blank' : item.text);
  const isSystem = data.is_chat && data.labels[item.label].color === 0;
  return clamped(text, item.text, isSystem ? [4, 280] : undefined);
}

/**
 * Returns a shortened text. A note about omitted lines opens to show them.
 * @param {Item} item
 * @param {Lines[]} form
 */
function shortText(item, form) {
  const text = make('div', 'text');
  text.dir = 'auto';
  for (const piece of piecesOf(item, form)) {
    if (piece.omitted === undefined) {
      text.append(make('span', 'kept', visible(piece.text)));
      continue;
    }
    const omitted = piece.omitted;
    const cut = make('details', 'cut', make('summary', '', visible(piece.text)));
    cut.addEventListener('toggle', () => cut.append(makeText('div', 'omitted', omitted)), { once: true });
    text.append(cut);
  }
  return text;
}

/**
 * Returns the whole text of a shortened item, with the omitted lines marked.
 * @param {Item} item
 * @param {Lines[]} form
 */
function comparedText(item, form) {
  const text = make('div', 'text');
  text.dir = 'auto';
  for (const { text: piece, isOmitted } of comparedWith(item, form)) {
    text.append(isOmitted ? make('del', 'omitted', visible(piece)) : visible(piece));
  }
  return text;
}

/**
 * A message of the transcript: who wrote it, and its text as the window of a budget has it.
 * @param {number} index
 */
function makeMessage(index) {
  const item = items[index];
  const head = make('div', 'head', roleOf(item), make('span', 'number', `#${index}`));
  if (item.pinned) head.append(pinOf(item));
  head.append(make('span', 'tokens'));
  const made = make('div', `message ${colorClass(item.label)}`, head, make('div', 'body'));
  made.classList.toggle('result', item.answers !== undefined);
  made.dataset.index = String(index);
  made.dataset.form = 'none';
  return made;
}

/**
 * Shows a message in the form that a window has.
 * @param {Element} made
 * @param {number | undefined} form
 */
function updateMessage(made, form) {
  if (!(made instanceof HTMLElement) || made.dataset.form === String(form)) return;
  made.dataset.form = String(form);
  const item = items[Number(made.dataset.index)];
  const [head, body] = made.children;
  const shown = head.querySelector('.tokens');
  if (shown instanceof HTMLElement) setTokens(shown, item, form);
  const lines = form === undefined ? undefined : item.forms?.[form]?.[1];
  body.replaceChildren();
  if (lines || item.original !== undefined) body.append(cutOf(item, form));
  if (lines) body.append(shortText(item, lines), fullTextButton(item, lines));
  else if (item.text !== '' || !item.calls) body.append(fullText(item));
  body.append(...(item.calls ?? []).map(callOf));
}

/**
 * Returns a button that shows the whole text of a shortened item.
 * @param {Item} item
 * @param {Lines[]} form
 */
function fullTextButton(item, form) {
  const toggle = () => {
    const show = button.getAttribute('aria-expanded') !== 'true';
    button.setAttribute('aria-expanded', String(show));
    button.textContent = show ? 'Show as sent' : 'Show full text';
    button.previousElementSibling?.replaceWith(show ? comparedText(item, form) : shortText(item, form));
  };
  const button = makeButton('plain', toggle, 'Show full text');
  button.setAttribute('aria-expanded', 'false');
  return button;
}
