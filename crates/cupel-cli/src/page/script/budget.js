
/* ---- budget.js: the bar, the slider and the number field ---- */

/**
 * @param {number[]} members
 * @param {Map<number, Marker>} markers
 */
function drawBudget(members, markers) {
  const { budget } = state;
  let added = 0n;
  for (const marker of markers.values()) added += BigInt(marker.tokens);
  const overhead = members.length > 0 ? BigInt(data.overhead) : 0n;
  const used = tokensOf(members, budget) + overhead + added;
  const parts = partsOf(members, overhead, added, used);
  view.bar.replaceChildren(
    ...parts.map((part) => {
      const segment = make('div', part.className, make('span', '', part.label));
      segment.style.flexGrow = String(Number(part.tokens));
      segment.title = `${part.label}: ${tokens(part.tokens)} tokens`;
      return segment;
    }),
  );
  view.bar.setAttribute('aria-label', `${tokens(used)} of ${tokens(budget)} tokens used`);
  view.legend.replaceChildren(
    ...parts.map((part) => make('li', '', swatch(part.className), part.label, make('b', '', tokens(part.tokens)))),
  );
  const cut = shortened.size;
  view.result.replaceChildren(
    make('b', '', tokens(members.length)),
    ` of ${counted(items.length)}, `,
    ...(cut > 0 ? [make('b', '', tokens(cut)), ' shortened, '] : []),
    make('b', '', tokens(used)),
    ` of ${tokens(budget)} tokens`,
  );
  speak(failureAt(budget)?.why ?? view.result.textContent ?? '');
}

/**
 * Returns what the tokens of a budget are used for.
 * @param {number[]} members
 * @param {bigint} overhead
 * @param {bigint} added
 * @param {bigint} used
 */
function partsOf(members, overhead, added, used) {
  const { budget } = state;
  const reserve = BigInt(given.reserve);
  const ceiling = budget + BigInt(given.max) - target - reserve;
  const limit = budget < ceiling ? budget : ceiling;
  /** @type {{className: string, label: string, tokens: bigint}[]} */
  const parts = [];
  /** @type {(className: string, label: string, tokens: bigint) => void} */
  const add = (className, label, size) => {
    if (size > 0n) parts.push({ className, label, tokens: size });
  };
  add('overhead', 'request overhead', overhead);
  data.labels.forEach(({ name }, label) => {
    const own = members.filter((index) => items[index].label === label);
    add(`used ${colorClass(label)}`, name, tokensOf(own, budget));
  });
  add('added', 'markers', added);
  parts.push({ className: 'free', label: 'free', tokens: limit > used ? limit - used : 0n });
  add('above', 'above the target', ceiling - (limit > used ? limit : used));
  add('reserve', 'reserved for the answer', reserve);
  return parts;
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
  markStrips(last > 0n ? Number(budget) / Number(last) : 0);

  const failure = failureAt(budget);
  const notices = [];
  if (state.refused !== '') notices.push(state.refused);
  if (failure) notices.push(`There is no window at ${tokens(budget)} tokens: ${failure.why}.`);
  if (!data.exact) {
    notices.push('Budgets were sampled for this policy: the slider stops only at sampled budgets.');
  }
  if (data.order === null && budget !== target) {
    notices.push(`The order is known only at a budget of ${tokens(target)}; items are listed in input order.`);
  }
  view.exact.setAttribute('aria-invalid', String(state.refused !== ''));
  view.notice.textContent = notices.join(' ');
  view.notice.hidden = notices.length === 0;
}

/**
 * Moves the line of all strips. A rule does not restyle the page as an inherited property would.
 * @param {number} share
 */
function markStrips(share) {
  const rules = [...(document.styleSheets[0]?.cssRules ?? [])];
  const rule = rules.find((rule) => rule instanceof CSSStyleRule && rule.selectorText === '.strip::after');
  if (rule instanceof CSSStyleRule) rule.style.left = `${100 * share}%`;
}

/**
 * Goes to a budget. One without a window because it is too small is refused: the page stays where it is.
 * @param {bigint} budget
 */
function choose(budget) {
  state.refused = '';
  if (budget < least) {
    const why = data.failures.findLast((failure) => failure.from < least)?.why ?? 'there is no window';
    state.refused = `At ${tokens(budget)} tokens ${why}. The smallest budget is ${tokens(least)} tokens.`;
  } else if (budget > last) {
    state.refused = `${tokens(last)} tokens are the largest budget of this page.`;
    state.budget = last;
  } else {
    state.budget = data.exact ? budget : stops[Math.max(0, countUpTo(stops, (stop) => stop, budget) - 1)];
  }
  draw();
}

/** @param {number} steps */
function move(steps) {
  const place = countUpTo(stops, (stop) => stop, state.budget) - 1 + steps;
  if (place >= 0 && place < stops.length) choose(stops[place]);
}

let speaking = 0;

/**
 * Tells screen readers the result once the slider rests.
 * @param {string} text
 */
function speak(text) {
  clearTimeout(speaking);
  speaking = setTimeout(() => {
    if (view.spoken.textContent !== text) view.spoken.textContent = text;
  }, 300);
}
