// Opens the pages in Chromium, moves what can be moved, and compares what they show with one run of the
// library per budget (expectations.json).

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import test, { after, before } from 'node:test';
import { expectations, open, screenshot, start } from './browser.mjs';

const PAGE = 30; // cards a list shows at first
const PHONE = { viewport: { width: 360, height: 780 }, hasTouch: true, isMobile: true };
const number = new Intl.NumberFormat('en-US');
const cases = Object.keys(expectations);
const axe = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let browser;
before(async () => {
  browser = await start();
});
after(() => browser.close());

/** A test that opens a page, and fails if the page complains or asks for anything. */
function check(name, page, body, options) {
  test(name, async () => {
    const opened = await open(browser, page, options);
    try {
      await body(opened.page, expectations[page], opened);
      assert.deepEqual(opened.complaints, []);
    } finally {
      await opened.context.close();
    }
  });
}

/** Opens a summary, and waits until its content is drawn: the page makes that in an event after the click. */
async function openSummary(summary, content) {
  await summary.click();
  await content.first().waitFor();
}

/** What the page shows, after it has drawn. */
function shown(page) {
  return page.evaluate(async () => {
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const text = (id) => document.getElementById(id)?.textContent ?? '';
    const count = (name) => document.querySelector(`.${name}-count`)?.textContent ?? '';
    const listed = (id) => [...document.querySelectorAll(`#${id} [data-index]`)].map((row) => Number(row.dataset.index));
    return {
      result: text('result'),
      budget: Number(document.getElementById('exact').value),
      spoken: document.getElementById('slider').getAttribute('aria-valuetext'),
      window: listed('window'),
      windowCount: count('window'),
      out: listed('out'),
      outCount: count('out'),
      shortenedCount: count('shortened'),
      notice: document.getElementById('notice').hidden ? '' : text('notice'),
      legend: [...document.querySelectorAll('#legend li')].map((entry) => entry.textContent),
    };
  });
}

/** Compares what is shown with a run at the budget it is shown for. */
function assertShows(view, expected) {
  const run = expected.runs.find((run) => run.budget === view.budget);
  assert(run, `there is no expectation for ${view.budget} tokens`);
  const of = `${number.format(view.budget)} tokens`;
  const { count } = expected;
  const unit = expected.is_chat ? 'messages' : 'items';
  const cut = run.shortened?.length ?? 0;
  assert.equal(
    view.result,
    `${number.format(run.window.length)} of ${number.format(count)} ${unit}, ${cut > 0 ? `${number.format(cut)} shortened, ` : ''}${number.format(BigInt(run.tokens))} of ${of}`,
  );
  assert.equal(view.shortenedCount, number.format(cut));
  assert.equal(view.spoken, of);
  assert(view.window.length >= Math.min(PAGE, run.window.length), `${view.window.length} rows`);
  assert.deepEqual(view.window, run.window.slice(0, view.window.length), `the window at ${of}`);
  assert.equal(view.windowCount, number.format(run.window.length));
  assert.equal(view.outCount, number.format(count - run.window.length));
  assert.equal(view.notice.includes('no window'), run.error !== undefined, view.notice);

  const isOut = new Set(Array(count).keys());
  run.window.forEach((index) => isOut.delete(index));
  assert(view.out.length >= Math.min(PAGE, isOut.size));
  assert(view.out.every((index) => isOut.has(index)));

  // The legend's uses add up to the run's tokens.
  const used = view.legend.filter((entry) => !/^(free|above the target|reserved for the answer)/.test(entry));
  const sum = used.reduce((sum, entry) => sum + BigInt(entry.match(/-?[\d,]+$/)[0].replaceAll(',', '')), 0n);
  assert.equal(sum, BigInt(run.tokens));
  return run;
}

async function type(page, budget) {
  // A frame that is still to be drawn would write the old budget into the field.
  await shown(page);
  await page.fill('#exact', String(budget));
  await page.keyboard.press('Enter');
}

/** The least budget with a window. */
const least = (expected) => expected.runs.find((run) => run.error === undefined).budget;

for (const name of cases) {
  check(`${name}: at the given budget the page shows the run`, name, async (page, expected) => {
    await page.click('#tab-window');
    const view = await shown(page);
    assert.equal(view.budget, expected.target);
    assertShows(view, expected);
    if (!expected.is_chat) assert.deepEqual(view.out, expected.excluded.slice(0, PAGE), 'what is out, by score');
  });

  check(`${name}: a budget typed in shows the run at that budget`, name, async (page, expected) => {
    await page.click('#tab-window');
    const runs = expected.runs.filter((run) => run.error === undefined);
    const stride = Math.ceil(runs.length / 12);
    for (const run of runs.filter((_, place) => place % stride === 0)) {
      await type(page, run.budget);
      const view = await shown(page);
      assert.equal(view.budget, run.budget);
      assertShows(view, expected);
    }
  });

  check(`${name}: a phone needs no sideways scrolling`, name, async (page) => {
    const width = () => page.evaluate(() => document.documentElement.scrollWidth);
    for (const tab of ['transcript', 'window', 'shortened', 'out']) {
      await page.tap(`#tab-${tab}`);
      await shown(page);
      assert.equal(await width(), 360, tab);
      for (const row of (await page.locator(`#panel-${tab} summary`).all()).slice(0, 8)) await row.click();
      await shown(page);
      assert.equal(await width(), 360, `${tab} with texts open`);
    }
  }, PHONE);
}

check('the slider moves by keyboard', 'incident', async (page, expected) => {
  await page.focus('#slider');
  const press = async (key, budget) => {
    await page.keyboard.press(key);
    const view = await shown(page);
    assert.equal(view.budget, budget, key);
    return assertShows(view, expected);
  };
  const last = expected.runs.at(-1).budget;
  for (let step = 1; step <= 12; step += 1) await press('ArrowRight', expected.target + step);
  for (let step = 11; step >= -12; step -= 1) await press('ArrowLeft', expected.target + step);
  await press('Home', least(expected));
  const everything = await press('End', last);
  assert.equal(everything.window.length, expected.count - 1, 'all but the copy');
});

check('the slider moves by mouse', 'incident', async (page, expected) => {
  const box = await page.locator('#slider').boundingBox();
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width / 2, y);
  await page.mouse.down();
  const seen = new Set();
  for (const share of [0.1, 0.2, 0.35, 0.5, 0.62, 0.75, 0.9]) {
    await page.mouse.move(box.x + box.width * share, y, { steps: 3 });
    const view = await shown(page);
    assertShows(view, expected);
    seen.add(view.budget);
  }
  await page.mouse.up();
  assert.equal(seen.size, 7);
  await page.click('#reset');
  assert.equal((await shown(page)).budget, expected.target);
});

for (const name of ['incident', 'u-shaped', 'agent-session']) {
  check(`${name}: every press of Larger brings another window`, name, async (page, expected) => {
    await page.click('#tab-window');
    const state = (run) => JSON.stringify([run.window, run.shortened]);
    let before = assertShows(await shown(page), expected);
    for (let press = 0; press < 25 && (await page.isEnabled('#next')); press += 1) {
      await page.click('#next');
      const run = assertShows(await shown(page), expected);
      assert.notEqual(state(run), state(before));
      // Nothing changed on the way.
      const previous = expected.runs.find(({ budget }) => budget === run.budget - 1);
      assert.equal(state(previous), state(before));
      before = run;
    }
    await page.click('#previous');
    assert.notEqual(state(assertShows(await shown(page), expected)), state(before));
  });
}

for (const name of ['incident', 'agent-session']) {
  check(`${name}: a budget below the minimum is refused, with the minimum`, name, async (page, expected) => {
    await page.click('#tab-window');
    const before = await shown(page);
    const minimum = least(expected);
    for (const budget of [minimum - 1, 1, 0, -5]) {
      await type(page, budget);
      const view = await shown(page);
      assert.match(view.notice, /do not fit\./);
      assert(view.notice.endsWith(`The smallest budget is ${number.format(minimum)} tokens.`), view.notice);
      assert.deepEqual({ ...view, notice: '' }, before, 'the page stays');
      assert.equal(await page.getAttribute('#exact', 'aria-invalid'), 'true');
    }
    await type(page, minimum);
    const view = await shown(page);
    assert.equal(view.notice, '');
    assert.equal(await page.getAttribute('#exact', 'aria-invalid'), 'false');
    assertShows(view, expected);
    await type(page, '1,000');
    assert.equal((await shown(page)).budget, 1000, 'separators are read');
  });
}

check('where budgets were sampled the page says so and stops at those', 'sampled', async (page, expected) => {
  const tried = new Set(expected.runs.map((run) => run.budget));
  assert.match((await shown(page)).notice, /sampled/);
  await page.focus('#slider');
  await page.keyboard.press('Home');
  let compared = 0;
  for (let press = 0; press < 400; press += 1) {
    await page.keyboard.press('ArrowRight');
    const view = await shown(page);
    if (!tried.has(view.budget)) continue;
    assertShows(view, expected);
    compared += 1;
  }
  assert(compared >= 5, `${compared} compared`);
  // A budget between two stops is taken down to the lower one.
  const run = expected.runs.at(-2);
  await type(page, run.budget + 1);
  assert((await shown(page)).budget <= run.budget + 1);
});

/** The cuts that the data of a page has at a budget. */
const cutsAt = (page, budget) =>
  page.evaluate((budget) => {
    const { cuts } = JSON.parse(document.getElementById('data').textContent);
    return cuts.findLast((entry) => entry.from <= budget)?.cuts;
  }, budget);

check('the cuts over time are those of the chosen budget', 'replayed', async (page, expected) => {
  const budgets = [expected.target, ...expected.runs.filter((run) => run.error === undefined).map((run) => run.budget)];
  const stride = Math.ceil(budgets.length / 8);
  let charts = 0;
  for (const budget of budgets.filter((_, place) => place % stride === 0)) {
    await type(page, budget);
    await shown(page);
    const cuts = await cutsAt(page, budget);
    assert.equal(await page.locator('#history').isVisible(), Boolean(cuts), `${budget}`);
    if (!cuts) continue;
    charts += 1;
    const count = cuts.made.length;
    assert.equal(await page.locator('#history-title').textContent(), `${count} cut${count === 1 ? '' : 's'} in ${cuts.requests} requests`);
    assert.equal(await page.locator('.plot .mark').count(), count);
    // A vertical line per cut, and a point per request and cut.
    const path = (name) => page.locator(`.chart .${name}`).getAttribute('d');
    assert.equal(((await path('drop')).match(/M/g) ?? []).length, count);
    assert.equal((await path('line')).match(/[ML]/g).length, cuts.requests + count);
    const label = await page.locator('.chart').getAttribute('aria-label');
    assert(label.includes(`budget of ${number.format(cuts.budget)}`), label);
    for (const [request, , before, after] of cuts.made.slice(0, 6)) {
      assert(label.includes(`request ${request}, `) && label.includes(`from ${number.format(before)} to ${number.format(after)} tokens`), label);
    }
    const rows = await page.locator('#history tbody tr').allTextContents();
    assert.deepEqual(rows, cuts.made.map((cut) => cut.map((value) => number.format(value)).join('')));
  }
  assert(charts > 3, `${charts} charts`);
});

check('lines of the transcript say what a prompt cache reads', 'replayed', async (page, expected) => {
  const view = await shown(page);
  const [shared, next] = await page.locator('#transcript > .cache').allTextContents();
  const [, index, size, all] = shared.match(/^Up to #(\d+) .* can read ([\d,]+) of ([\d,]+) tokens/);
  assert(view.result.includes(all), `${all}: ${view.result}`);
  assert(Number(size.replaceAll(',', '')) < Number(all.replaceAll(',', '')));
  // The line is behind the message that it names, or behind its group.
  const before = await page.locator('#transcript > .cache').first().evaluate((line) => {
    const { previousElementSibling } = line;
    return [...previousElementSibling.querySelectorAll('[data-index]')].map((message) => message.dataset.index);
  });
  assert(before.includes(index), `${index}: ${before}`);
  const cuts = await cutsAt(page, expected.target);
  assert(next.includes(cuts.next_in === 0 ? 'probably needs a cut' : `next ${cuts.next_in} request`), next);
  assert(next.includes(`up to #${cuts.head}`), next);
  // A filter hides messages, so that the lines would be in other places.
  await page.fill('#search', 'month');
  await shown(page);
  assert.equal(await page.locator('#transcript > .cache').count(), 0);
});

check('the chart of the cuts is closed on a phone and fits when open', 'replayed', async (page) => {
  await shown(page);
  assert(await page.locator('.chart').isHidden());
  await page.tap('#history > summary');
  await page.tap('#history .list > summary');
  assert(await page.locator('.chart').isVisible());
  assert(await page.locator('#history tbody tr').first().isVisible());
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
}, PHONE);

check('which cut shortened or dropped a message is said', 'replayed', async (page) => {
  await page.click('#tab-shortened');
  await shown(page);
  const reasons = await page.locator('#shortened .reason').allTextContents();
  assert(reasons.some((reason) => /, cut at request \d+ of \d+: [\d,]+ tokens, over the budget of [\d,]+, became [\d,]+\.$/.test(reason)), reasons.join('\n'));
  const out = await page.locator('#out .reason').allTextContents();
  assert(out.some((reason) => /older than the cut at request \d+/i.test(reason)), out.join('\n'));
});

check('budgets of the default policy are not sampled', 'agent-session', async (page) => {
  assert.equal((await shown(page)).notice, '');
});

/** The messages of the transcript: role, text as it is sent, names of the called tools. */
function transcript(page) {
  return page.evaluate(async () => {
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const textOf = (text) => {
      if (!text) return '';
      if (!text.querySelector('.kept, .cut')) return text.textContent;
      return [...text.children].map((part) => part.querySelector('summary')?.textContent ?? part.textContent).join('\n');
    };
    const role = (at) => at.querySelector('.role').childNodes[1].textContent;
    return [...document.querySelectorAll('#transcript > li:not(.gap)')].flatMap((entry) =>
      entry.matches('.marker')
        ? [[role(entry), textOf(entry.querySelector('.text')), []]]
        : [...entry.children].map((message) => [
            role(message),
            textOf(message.querySelector('.text')),
            [...message.querySelectorAll('.call b')].map((name) => name.textContent),
          ]));
  });
}

check('the transcript is what the model gets', 'agent-session', async (page, expected) => {
  assert.equal(expected.sent.length, 8);
  for (const [budget, sent] of expected.sent) {
    await type(page, budget);
    assert.deepEqual(await transcript(page), sent, `at ${budget} tokens`);
  }
});

check('a gap of the transcript opens and says why', 'agent-session', async (page, expected) => {
  const run = expected.runs.find(({ budget }) => budget === expected.target);
  const omitted = expected.count - run.window.length;
  const gap = page.locator('#transcript .gap');
  assert.equal(await gap.count(), 1);
  assert.match(await gap.locator('summary').first().textContent(), new RegExp(`^${omitted} messages left out`));
  await openSummary(gap.locator('summary').first(), gap.locator('[data-index]'));
  const isOut = (index) => !run.window.includes(index);
  const listed = await gap.locator('[data-index]').evaluateAll((rows) => rows.map((row) => Number(row.dataset.index)));
  assert.deepEqual(listed, [...Array(expected.count).keys()].filter(isOut));
  for (const reason of await gap.locator('.reason').allTextContents()) assert.match(reason, /; included from [\d,]+ tokens on\.$/);
  await page.click('#next');
  await shown(page);
  assert(await gap.locator('details').first().evaluate((details) => details.open), 'it stays open at another budget');
  assert((await gap.locator('[data-index]').count()) <= omitted);
});

check('a shortened result opens where it was cut, and in full', 'agent-session', async (page, expected) => {
  const message = page.locator('#transcript [data-index="24"]');
  const run = expected.runs.find(({ budget }) => budget === expected.target);
  const [, size, full] = run.shortened.find(([index]) => index === 24);
  assert.equal(await message.locator('.tokens').textContent(), `${size} of ${full} tokens`);
  const cut = message.locator('.cut');
  assert.match(await cut.locator('summary').textContent(), /^\[\d+ lines omitted/);
  await cut.locator('summary').click();
  const omitted = await cut.locator('.omitted').textContent();
  assert.match(omitted, /def group_usage/);
  const kept = await message.locator('.kept').allTextContents();
  await message.locator('button', { hasText: 'Show full text' }).click();
  const text = await message.locator('.text').textContent();
  assert(text.includes(omitted.trim()));
  assert(text.endsWith(kept.at(-1)));
  assert((await message.locator('del').allTextContents()).join('').includes('def group_usage'), 'what is omitted is marked');
  await message.locator('button', { hasText: 'Show as sent' }).click();
  assert.equal(await cut.count(), 1);
  // An answer that is cut inside a line.
  const answer = page.locator('#transcript [data-index="42"]');
  await answer.locator('button', { hasText: 'Show full text' }).click();
  const [whole, marked] = [await answer.locator('.text').textContent(), await answer.locator('del').textContent()];
  assert(whole.startsWith('All 43 tests pass.') && marked.length > 0 && marked.length < whole.length);
});

check('what is shortened is counted, listed with the reason of each cut, and a filter', 'agent-session', async (page, expected) => {
  const run = expected.runs.find(({ budget }) => budget === expected.target);
  const cuts = new Map(run.shortened.map(([index, now, before]) => [index, { now, before }]));
  await page.click('#tab-shortened');
  const view = await shown(page);
  assert.equal(view.shortenedCount, String(cuts.size));
  const total = [...cuts.values()].reduce((sum, { now, before }) => sum + before - now, 0);
  assert.equal(
    await page.locator('#saved').textContent(),
    `${cuts.size} messages are shortened, by ${number.format(total)} tokens in total. Largest cut first.`,
  );
  const cards = await page.locator('#shortened > .card').evaluateAll((cards) => cards.map((card) => ({
    index: Number(card.querySelector('[data-index]').dataset.index),
    tokens: card.querySelector('.tokens').textContent,
    reason: card.querySelector('.reason').textContent,
  })));
  const saved = ({ index }) => cuts.get(index).before - cuts.get(index).now;
  assert.deepEqual(new Set(cards.map(({ index }) => index)), new Set(cuts.keys()));
  assert.deepEqual(cards.map(saved), cards.map(saved).toSorted((a, b) => b - a));
  for (const { index, tokens, reason } of cards) {
    const { now, before } = cuts.get(index);
    assert.equal(tokens, `${now} of ${before} tokens`);
    assert(reason.startsWith(`Shortened from ${before} to ${now} tokens; step for `), reason);
    // The level of the step is that of the text; a role and an id come on top.
    const level = Number(reason.match(/: about ([\d,]+) tokens each\.$/)[1].replaceAll(',', ''));
    assert(level + 10 >= now && level < before, reason);
  }
  const of = (index) => cards.find((card) => card.index === index).reason;
  assert.match(of(24), /step for tool results: /);
  assert.match(of(41), /step for what is always kept \(newest step\): /);
  assert.match(of(42), /step for texts: /);
  // A row opens and shows what is missing.
  const row = page.locator('#shortened [data-index="24"]');
  await openSummary(row.locator('summary').first(), row.locator('del'));
  // The filter leaves only these in the transcript, where each says why it is short.
  await page.click('#tab-transcript');
  await page.click('#shortened-only');
  await shown(page);
  const left = await page.locator('#transcript > .card').count();
  assert(left > 0 && left <= cuts.size);
  assert.equal(await page.locator('#transcript .message .reason').count(), cuts.size);
  await page.click('#shortened-only');
  // At the largest budget everything is in, in full.
  await type(page, expected.runs.at(-1).budget);
  const all = await shown(page);
  assert.equal(all.shortenedCount, '0');
  assert.equal(await page.locator('#out-empty').textContent(), 'Everything is in, in full.');
});

check('a window without gaps still says what is shortened', 'agent-session', async (page, expected) => {
  const run = expected.runs.find((run) => run.window.length === expected.count && run.shortened.length > 0);
  assert(run, 'no budget keeps every message and shortens some');
  await type(page, run.budget);
  assertShows({ ...(await shown(page)), window: run.window }, expected);
  const empty = await page.locator('#out-empty').textContent();
  assert.match(empty, new RegExp(`^Nothing is left out, but ${run.shortened.length} messages? (is|are) shortened, by [\\d,]+ tokens in total\\.$`));
});

check('a call and its results are one card', 'agent-session', async (page) => {
  const card = (list) => page.locator(`#${list} > .card`, { has: page.locator('[data-index="19"]') });
  for (const list of ['transcript', 'window']) {
    await page.click(`#tab-${list}`);
    await shown(page);
    const members = await card(list).locator('[data-index]').evaluateAll((rows) => rows.map((row) => row.dataset.index));
    assert.deepEqual(members, ['19', '20', '21', '22'], list);
    assert.deepEqual(await card(list).locator('.tool').allTextContents(), ['edit_file', 'edit_file', 'edit_file']);
  }
});

check('pinned messages say why', 'agent-session', async (page) => {
  const pin = (index) => page.locator(`#transcript [data-index="${index}"] .pin`).textContent();
  assert.equal(await pin(0), 'always kept: system message');
  assert.equal(await pin(1), 'always kept: task');
  assert.equal(await pin(43), 'always kept: last user turn');
  assert.equal(await pin(39), 'always kept: newest step');
});

check('roles are told apart by color, by shape and by name', 'agent-session', async (page) => {
  const roles = await page.locator('#labels button').evaluateAll((buttons) => buttons.map((button) => {
    const { backgroundColor, clipPath } = getComputedStyle(button.querySelector('.swatch'));
    return { name: button.childNodes[1].textContent, backgroundColor, clipPath };
  }));
  assert.deepEqual(roles.map((role) => role.name), ['system', 'user', 'assistant', 'tool']);
  for (const key of ['backgroundColor', 'clipPath']) assert.equal(new Set(roles.map((role) => role[key])).size, 4, key);
});

check('the footer names what made the page', 'agent-session', async (page) => {
  const about = await page.locator('#about div').allInnerTexts();
  assert.deepEqual(about.map((entry) => entry.replace(/\s+/g, ' ')), [
    'policy agent', 'model gpt-4o', 'tokens counted by o200k_base', 'budget 2,000', 'format openai', 'date 2026-11-16', 'cupel 1.3.0',
  ]);
  assert(!(await page.content()).includes('1970'), 'no invented times');
});

check('the filter by kind works by mouse', 'incident', async (page, expected) => {
  const before = await shown(page);
  await page.click('#labels button:has-text("ToolOutput")');
  let view = await shown(page);
  const isTool = (index) => expected.kinds[index] === 'tooloutput';
  assert.deepEqual(view.window, before.window.filter(isTool));
  assert.deepEqual(view.out, before.out.filter(isTool));
  assert.equal(view.windowCount, `${view.window.length} of ${before.window.length}`);
  assert.equal(view.result, before.result, 'the budget is not filtered');
  await page.click('#labels button:has-text("Memory")');
  view = await shown(page);
  const isEither = (index) => isTool(index) || expected.kinds[index] === 'memory';
  assert.deepEqual(view.window, before.window.filter(isEither));
  await page.focus('#slider');
  await page.keyboard.press('ArrowLeft');
  view = await shown(page);
  const run = expected.runs.find(({ budget }) => budget === expected.target - 1);
  assert.deepEqual(view.window, run.window.filter(isEither), 'the filter stays while the slider moves');
});

for (const [device, options] of [['desktop', {}], ['phone', PHONE]]) {
  check(`budget, views and filters stay while scrolling: ${device}`, 'agent-session', async (page) => {
    await page.evaluate(() => scrollTo(0, 1500));
    await page.waitForTimeout(100);
    assert((await page.evaluate(() => scrollY)) > 1000);
    for (const part of ['#slider', '#exact', '#tabs', '#search', '#labels button']) {
      const { y, height } = await page.locator(part).first().boundingBox();
      assert(y >= 0 && y + height <= 250, `${part} is at ${y}`);
    }
  }, options);
}

check('all filters are in view on a phone', 'agent-session', async (page) => {
  const { width } = page.viewportSize();
  for (const chip of await page.locator('#labels button').all()) {
    const box = await chip.boundingBox();
    assert(box.x >= 0 && box.x + box.width <= width, `${await chip.textContent()} ends at ${box.x + box.width}`);
  }
}, PHONE);

check('matches of the search are highlighted', 'agent-session', async (page) => {
  const marked = () => page.evaluate(() => [...(CSS.highlights.get('match') ?? [])].map(String));
  const waitForMatches = (some) => page.waitForFunction((some) => (CSS.highlights.get('match')?.size ?? 0) > 0 === some, some);
  await page.fill('#search', 'Git_Show');
  await waitForMatches(true);
  const texts = await marked();
  assert(texts.every((text) => text.toLowerCase() === 'git_show'), texts.join());
  await page.fill('#search', '');
  await waitForMatches(false);
});

check('everything is reached by the Tab key, in reading order', 'incident', async (page, expected) => {
  const before = await shown(page);
  const visited = [];
  for (let press = 0; press < 13; press += 1) {
    await page.keyboard.press('Tab');
    visited.push(await page.evaluate(() => {
      const at = document.activeElement;
      if (getComputedStyle(at).outlineStyle === 'none') return `${at.id} has no outline`;
      return at.id || at.closest('[id]').id;
    }));
    if (visited.at(-1) === 'labels' && visited.at(-2) === 'search') {
      await page.keyboard.press('Space');
      const isDocument = (index) => expected.kinds[index] === 'document';
      const view = await shown(page);
      assert.deepEqual(view.window, before.window.filter(isDocument));
      assert.deepEqual(view.out, before.out.filter(isDocument));
      await page.keyboard.press('Space');
      assert.deepEqual((await shown(page)).window, before.window);
    }
  }
  const kinds = new Set(expected.kinds).size;
  const fixed = ['previous', 'slider', 'next', 'exact', 'tab-window', 'search', ...Array(kinds).fill('labels')];
  assert.deepEqual(visited.slice(0, fixed.length), fixed);
  assert.deepEqual(visited.slice(fixed.length), ['window', 'window']);
});

for (const [device, options, tabs] of [['desktop', {}, ['transcript', 'window', 'shortened']], ['phone', PHONE, ['transcript', 'window', 'shortened', 'out']]]) {
  check(`arrow keys move between the tabs: ${device}`, 'agent-session', async (page) => {
    const selected = () => page.locator('[role="tab"][aria-selected="true"]').getAttribute('id');
    const press = async (key, tab) => {
      await page.keyboard.press(key);
      await shown(page);
      assert.equal(await selected(), `tab-${tab}`, key);
      assert.equal(await page.evaluate(() => document.activeElement.id), `tab-${tab}`);
      assert(await page.isVisible(`#panel-${tab}`));
      for (const other of tabs.filter((name) => name !== tab)) assert(await page.isHidden(`#panel-${other}`), other);
    };
    await page.focus('#tab-transcript');
    for (const tab of tabs.slice(1)) await press('ArrowRight', tab);
    await press('ArrowRight', tabs[0]);
    await press('ArrowLeft', tabs.at(-1));
    await press('Home', tabs[0]);
    await press('End', tabs.at(-1));
    assert(await page.isVisible('#panel-out'));
  }, options);
}

check('a screen reader hears the result once the slider rests', 'agent-session', async (page, expected) => {
  const spoken = page.locator('#spoken');
  assert.equal(await spoken.getAttribute('role'), 'status');
  await page.focus('#slider');
  for (let press = 0; press < 5; press += 1) await page.keyboard.press('ArrowLeft');
  await page.waitForFunction(() => document.getElementById('spoken').textContent.includes('of 1,995 tokens'));
  const run = expected.runs.find(({ budget }) => budget === 1995);
  assert.equal(
    await spoken.textContent(),
    `${run.window.length} of 44 messages, ${run.shortened.length} shortened, ${number.format(Number(run.tokens))} of 1,995 tokens`,
  );
});

for (const [name, options] of [
  ['agent-session', {}], ['agent-session', { colorScheme: 'dark' }], ['agent-session', PHONE],
  ['replayed', {}], ['replayed', { colorScheme: 'dark' }], ['replayed', PHONE], ['incident', {}], ['hostile', {}],
]) {
  check(`${name}: axe finds no fault (${JSON.stringify(options)})`, name, async (page) => {
    for (const summary of (await page.locator('main summary').all()).slice(0, 12)) {
      const isOpen = await summary.evaluate((summary) => summary.parentElement.open);
      if (!isOpen && (await summary.isVisible())) await summary.click();
    }
    await shown(page);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    const faults = violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`);
    assert.deepEqual(faults, []);
  }, options);
}

check('the search finds texts whatever their case', 'incident', async (page) => {
  await page.fill('#search', 'ROLLBACK');
  const view = await shown(page);
  const texts = await page.locator('.list summary').allTextContents();
  assert(view.window.length + view.out.length >= 3);
  assert(view.window.length + view.out.length < 12);
  assert(texts.some((text) => text.includes('Runbook: checkout rollback')));
  await page.fill('#search', 'no text has these words');
  await shown(page);
  assert.match(await page.textContent('#window-empty'), /matches the filter/);
});

check('the search finds calls in the transcript', 'agent-session', async (page) => {
  await page.fill('#search', 'git_show');
  await shown(page);
  const calls = page.locator('#transcript .gap .call b');
  await openSummary(page.locator('#transcript .gap summary').first(), calls);
  assert.deepEqual(await calls.allTextContents(), ['git_show']);
});

check('an item opens by keyboard, with its text and the parts of its score', 'incident', async (page) => {
  const row = page.locator('#out [data-index="9"]');
  const card = page.locator('#out > .card', { has: page.locator('[data-index="9"]') });
  assert.match(await card.locator('.reason').textContent(), /^No room: needs 517, \d+ left; included (from|at) /);
  await row.locator('summary').focus();
  await page.keyboard.press('Enter');
  const text = await row.locator('.text').textContent();
  assert.equal(text.split('\n').length, 19);
  assert.equal(Math.round(text.length / 3.9), 517);
  // The newest message: hint 1.0 times 3/6, newest times 2/6, kind of least weight.
  const newest = page.locator('#window [data-index="27"]');
  assert.equal(await newest.locator('.score').textContent(), '0.833');
  const parts = newest.locator('.parts tbody tr');
  await openSummary(newest.locator('summary'), parts);
  assert.deepEqual(await parts.allInnerTexts(), [
    'Composite\t0.833\t\t',
    'Reflexive\t1.000\t× 0.50\t0.500',
    'Recency\t1.000\t× 0.33\t0.333',
    'Scaled\t0.000\t× 0.17\t0.000',
    'Kind\t0.200\t\t',
  ]);
});

check('texts stay texts', 'hostile', async (page) => {
  for (const summary of await page.locator('.panels summary').all()) await summary.click();
  await page.waitForFunction(() => document.querySelectorAll('.list .text').length === 16);
  const texts = await page.locator('.text').allTextContents();
  assert(texts.includes("</script><script>document.title = 'taken'</script>"));
  assert(texts.includes('nul ␀ bell ␇ escape ␛[31m delete ␡ line\u2028separator\nnext'));
  assert(texts.some((text) => text.length === 5000));
  assert(texts.includes('<!-- <script> --> {{script}} {{data}} ${1+1} &lt;&amp;'));
  assert.equal(await page.title(), 'hostile.json – context window');
  for (const [selector, count] of [['h1', 1], ['img', 0], ['script', 2], ['template', 0], ['i', 1]]) {
    assert.equal(await page.locator(selector).count(), count, selector);
  }
  assert.equal(await page.locator('.excerpt.blank').textContent(), 'blank');
  assert.match(await page.locator('[data-index="12"] .tokens').textContent(), /^9,223,372,036,854,775,807 /);
  const direction = (index) => page.locator(`[data-index="${index}"] .excerpt`).evaluate((at) => getComputedStyle(at).direction);
  assert.equal(await direction(6), 'rtl');
  assert.equal(await direction(0), 'ltr');
});

check('no script but its own can run', 'incident', async (page, _, { complaints }) => {
  await page.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = "document.title = 'taken'";
    document.body.append(script);
    const image = document.createElement('img');
    image.setAttribute('onerror', "document.title = 'taken'");
    image.src = 'data:,';
    document.body.append(image);
  });
  await page.waitForTimeout(100);
  assert.notEqual(await page.title(), 'taken');
  const refused = complaints.splice(0).filter((complaint) => complaint.includes('Content Security Policy'));
  assert(refused.length >= 2, `${refused.length} refused`);
});

check('of ten thousand items the page draws a few hundred', 'many', async (page, expected) => {
  const rows = async () => {
    await shown(page);
    return page.locator('.row').count();
  };
  assert.equal(await rows(), 2 * PAGE);
  await page.evaluate(async () => {
    const slider = document.getElementById('slider');
    for (let step = 1; step <= 20; step += 1) {
      slider.value = String((Number(slider.max) * step) / 20);
      slider.dispatchEvent(new Event('input'));
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    }
  });
  assert((await rows()) <= 2 * PAGE);
  await type(page, expected.target);
  const before = await shown(page);
  await page.locator('#out-more').evaluate((button) => button.click());
  const view = await shown(page);
  assert.deepEqual(view.out, expected.excluded.slice(0, 2 * PAGE));
  assert.deepEqual(view.window, before.window);
  await page.fill('#search', 'passage 9999 ');
  assert.equal(await rows(), 1);
});

check('scrolling shows the next cards', 'many', async (page) => {
  await shown(page);
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  await page.waitForFunction((count) => document.querySelectorAll('#out > li').length > count, PAGE);
});

check('a step of the slider at 5,000 messages stays near its goal of 50 ms', 'long-session', async (page, expected, { opened }) => {
  assert.equal(await page.title(), 'long-session.json – context window');
  for (const tab of ['transcript', 'window']) {
    await page.click(`#tab-${tab}`);
    const times = await page.evaluate(async () => {
      const slider = document.getElementById('slider');
      const [first, last] = [Number(slider.min), Number(slider.max)];
      const times = [];
      const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      for (let step = 1; step <= 60; step += 1) {
        await frame();
        const start = performance.now();
        slider.value = String(first + Math.round(((last - first) * step) / 60));
        slider.dispatchEvent(new Event('input'));
        await new Promise((done) => requestAnimationFrame(done));
        // The layout of the new content is part of the step.
        document.body.getBoundingClientRect();
        times.push(performance.now() - start);
      }
      return times.sort((a, b) => a - b);
    });
    const [median, slowest] = [times[30], times[59]];
    console.log(`${tab}: a step takes ${median.toFixed(1)} ms (median of 60, slowest ${slowest.toFixed(1)} ms); the page opened in ${opened} ms`);
    // The goal is 50 ms; a busy machine may take several times as long.
    assert(median < 250, `${median} ms`);
  }
});

/** The contrast of two colors as WCAG 2 defines it. */
function contrast(a, b) {
  const luminance = (color) => {
    const channels = color.match(/[\d.]+/g).slice(0, 3).map((channel) => channel / 255);
    const [red, green, blue] = channels.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

for (const colorScheme of ['light', 'dark']) {
  check(`the chart of the cuts can be told from its ground when it is ${colorScheme}`, 'replayed', async (page) => {
    await shown(page);
    const colors = await page.evaluate(() => {
      const ground = getComputedStyle(document.getElementById('history')).backgroundColor;
      const strokes = ['line', 'limit', 'drop'].map((name) => [name, getComputedStyle(document.querySelector(`.chart .${name}`)).stroke]);
      return { ground, strokes, line: getComputedStyle(document.querySelector('.cache')).color, page: getComputedStyle(document.documentElement).backgroundColor };
    });
    for (const [name, stroke] of colors.strokes) assert(contrast(stroke, colors.ground) >= 3, `${name}: ${contrast(stroke, colors.ground)}`);
    assert(contrast(colors.line, colors.page) >= 4.5, `${contrast(colors.line, colors.page)}`);
    await screenshot(page, `replayed-${colorScheme}`);
  }, { colorScheme });

  check(`texts and bars can be told from their ground when it is ${colorScheme}`, 'agent-session', async (page) => {
    const colors = await page.evaluate(() => {
      const ground = (at) => {
        for (let own = at; own; own = own.parentElement) {
          const color = getComputedStyle(own).backgroundColor;
          if (color !== 'rgba(0, 0, 0, 0)') return color;
        }
        return 'rgb(255, 255, 255)';
      };
      const texts = ['h1', '.quiet', '.outcome', '.legend li', '#search', '.chips button', '.number', '.excerpt', '.reason', '.tokens small', '.pin', '.call .args', '.cut summary', 'footer'];
      const drawn = ['.bar > .used', '.card .swatch'];
      return {
        page: getComputedStyle(document.documentElement).backgroundColor,
        texts: texts.map((selector) => [selector, getComputedStyle(document.querySelector(selector)).color, ground(document.querySelector(selector))]),
        drawn: drawn.flatMap((selector) =>
          [...document.querySelectorAll(selector)].map((at) => [selector, getComputedStyle(at).backgroundColor, ground(at.parentElement)])),
      };
    });
    for (const [selector, ink, ground] of colors.texts) assert(contrast(ink, ground) >= 4.5, `${selector}: ${contrast(ink, ground)}`);
    for (const [selector, ink, ground] of colors.drawn) assert(contrast(ink, ground) >= 3, `${selector}: ${contrast(ink, ground)}`);
    const isDark = contrast(colors.page, 'rgb(0, 0, 0)') < 2;
    assert.equal(isDark, colorScheme === 'dark');
    await screenshot(page, colorScheme);
  }, { colorScheme });
}

check('paper shows the window and no controls', 'incident', async (page, expected) => {
  await page.emulateMedia({ media: 'print' });
  assert(await page.locator('#slider').isHidden());
  assert(await page.locator('.filters').isHidden());
  assert(await page.locator('#bar').isVisible());
  assertShows(await shown(page), expected);
});
