// Opens the pages in Chromium, moves what can be moved, and compares what they show with one run of the
// library per budget (expectations.json).

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { expectations, open, screenshot, start } from './browser.mjs';

const PAGE = 100; // rows a list shows at first
const number = new Intl.NumberFormat('en-US');
const cases = Object.keys(expectations);

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

/** What the page shows, after it has drawn. */
function shown(page) {
  return page.evaluate(async () => {
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const text = (id) => document.getElementById(id)?.textContent ?? '';
    const listed = (id) => [...document.querySelectorAll(`#${id} > li`)].map((row) => Number(row.dataset.index));
    return {
      result: text('result'),
      budget: Number(document.getElementById('exact').value),
      spoken: document.getElementById('slider').getAttribute('aria-valuetext'),
      window: listed('window'),
      windowCount: text('window-count'),
      out: listed('out'),
      outCount: text('out-count'),
      notice: document.getElementById('notice').hidden ? '' : text('notice'),
      legend: [...document.querySelectorAll('#legend li')].map((entry) => entry.textContent),
      bar: [...document.querySelectorAll('#bar > *')].map((part) => part.getBoundingClientRect().width),
    };
  });
}

/** Compares what is shown with a run at the budget it is shown for. */
function assertShows(view, expected) {
  const run = expected.runs.find((run) => run.budget === view.budget);
  assert(run, `there is no expectation for ${view.budget} tokens`);
  const of = `${number.format(view.budget)} tokens`;
  const all = expected.tokens.length;
  assert.equal(
    view.result,
    `${number.format(run.window.length)} of ${number.format(all)} items, ${number.format(BigInt(run.tokens))} of ${of}`,
  );
  assert.equal(view.spoken, of);
  assert.deepEqual(view.window, run.window.slice(0, PAGE), `the window at ${of}`);
  assert.equal(view.windowCount, number.format(run.window.length));
  assert.equal(view.outCount, number.format(all - run.window.length));
  assert.equal(view.notice.includes('no window'), run.error !== undefined, view.notice);

  const isOut = new Set(expected.tokens.keys());
  run.window.forEach((index) => isOut.delete(index));
  assert.equal(view.out.length, Math.min(PAGE, isOut.size));
  assert(view.out.every((index) => isOut.has(index)));

  // The legend's uses add up to the run's tokens, kind by kind.
  const used = view.legend.filter((entry) => !/^(free|above the target|reserved for the answer)/.test(entry));
  const sum = used.reduce((sum, entry) => sum + BigInt(entry.match(/[\d,]+$/)[0].replaceAll(',', '')), 0n);
  assert.equal(sum, BigInt(run.tokens));
  return run;
}

async function type(page, budget) {
  await page.fill('#exact', String(budget));
  await page.keyboard.press('Enter');
}

for (const name of cases) {
  check(`${name}: at the given budget the page shows the run`, name, async (page, expected) => {
    const view = await shown(page);
    assert.equal(view.budget, expected.target);
    assertShows(view, expected);
    assert.deepEqual(view.out, expected.excluded.slice(0, PAGE), 'what is out, by score');
  });

  check(`${name}: a budget typed in shows the run at that budget`, name, async (page, expected) => {
    const stride = Math.ceil(expected.runs.length / 40);
    const runs = expected.runs.filter((_, place) => place % stride === 0);
    for (const run of runs) {
      await type(page, run.budget);
      const view = await shown(page);
      assert.equal(view.budget, run.budget);
      assertShows(view, expected);
    }
  });

  check(`${name}: a phone needs no sideways scrolling`, name, async (page) => {
    const width = () => page.evaluate(() => document.documentElement.scrollWidth);
    assert.equal(await width(), 360);
    for (const row of (await page.locator('summary').all()).slice(0, 12)) await row.click();
    assert.equal(await width(), 360, 'with texts open');
    if (name === 'incident') await screenshot(page, 'narrow');
  }, { viewport: { width: 360, height: 780 }, hasTouch: true, isMobile: true });
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
  const nothing = await press('Home', 0);
  assert.equal(nothing.error, 'PinnedExceedsBudget');
  assert.match((await shown(page)).notice, /the pinned items alone need \d+ tokens/);
  const everything = await press('End', last);
  assert.equal(everything.window.length, expected.tokens.length - 1, 'all but the copy');
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

for (const name of ['incident', 'u-shaped']) {
  check(`${name}: every press of Larger brings another window`, name, async (page, expected) => {
    let before = assertShows(await shown(page), expected);
    for (let press = 0; press < 25 && (await page.isEnabled('#next')); press += 1) {
      await page.click('#next');
      const run = assertShows(await shown(page), expected);
      assert.notDeepEqual(run.window, before.window);
      // Nothing changed on the way.
      const previous = expected.runs.find(({ budget }) => budget === run.budget - 1);
      assert.deepEqual(previous.window, before.window);
      before = run;
    }
    await page.click('#previous');
    assert.notDeepEqual(assertShows(await shown(page), expected).window, before.window);
  });
}

check('where budgets were sampled the page says so and stops at those', 'sampled', async (page, expected) => {
  const tried = new Set(expected.runs.map((run) => run.budget));
  assert.match((await shown(page)).notice, /sampled/);
  await page.focus('#slider');
  await page.keyboard.press('Home');
  let compared = 0;
  for (let press = 0; press < 200; press += 1) {
    await page.keyboard.press('ArrowRight');
    const view = await shown(page);
    if (!tried.has(view.budget)) continue;
    assertShows(view, expected);
    compared += 1;
  }
  assert(compared >= 5, `${compared} compared`);
  // A budget between two stops is taken down to the lower one.
  const run = expected.runs.at(-1);
  await type(page, run.budget + 1);
  assert((await shown(page)).budget <= run.budget + 1);
});

check('the filter by kind works by mouse', 'incident', async (page, expected) => {
  const before = await shown(page);
  await page.click('#kinds button:has-text("ToolOutput")');
  let view = await shown(page);
  const isTool = (index) => expected.kinds[index] === 'tooloutput';
  assert.deepEqual(view.window, before.window.filter(isTool));
  assert.deepEqual(view.out, before.out.filter(isTool));
  assert.equal(view.windowCount, `${view.window.length} of ${before.window.length}`);
  assert.equal(view.result, before.result, 'the budget is not filtered');
  await page.click('#kinds button:has-text("Memory")');
  view = await shown(page);
  const isEither = (index) => isTool(index) || expected.kinds[index] === 'memory';
  assert.deepEqual(view.window, before.window.filter(isEither));
  await page.focus('#slider');
  await page.keyboard.press('ArrowLeft');
  view = await shown(page);
  const run = expected.runs.find(({ budget }) => budget === expected.target - 1);
  assert.deepEqual(view.window, run.window.filter(isEither), 'the filter stays while the slider moves');
});

check('everything is reached by the Tab key, in reading order', 'incident', async (page, expected) => {
  const before = await shown(page);
  const visited = [];
  for (let press = 0; press < 14; press += 1) {
    await page.keyboard.press('Tab');
    visited.push(await page.evaluate(() => {
      const at = document.activeElement;
      if (getComputedStyle(at).outlineStyle === 'none') return `${at.id} has no outline`;
      return at.id || at.className || at.closest('[id]').id;
    }));
    if (press === 5) {
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
  const fixed = ['previous', 'slider', 'next', 'exact', 'search', ...Array(kinds).fill('kinds')];
  assert.deepEqual(visited.slice(0, fixed.length), fixed);
  // The first item is pinned and has no score; then a score and a text each.
  assert.deepEqual(visited.slice(fixed.length), ['window', 'score', 'window', 'score']);
});

check('the search finds texts whatever their case', 'incident', async (page) => {
  await page.fill('#search', 'ROLLBACK');
  const view = await shown(page);
  const texts = await page.locator('.items summary').allTextContents();
  assert(view.window.length + view.out.length >= 3);
  assert(view.window.length + view.out.length < 12);
  assert(texts.some((text) => text.includes('Runbook: checkout rollback')));
  await page.fill('#search', 'nobody wrote this');
  assert.match(await page.textContent('#window-empty'), /matches the filter/);
});

check('the parts of a score are shown on hover and on focus, and hidden by Escape', 'incident', async (page) => {
  const last = page.locator('li[data-index="27"] .score');
  const parts = page.locator('#parts');
  // The newest message: hint 1.0 times 3/6, newest times 2/6, kind of least weight.
  assert.equal(await last.textContent(), '0.833');
  assert(await parts.isHidden());
  await last.hover();
  assert.deepEqual(await parts.locator('tbody tr').allInnerTexts(), [
    'Composite\t0.833\t\t',
    'Reflexive\t1.000\t× 0.50\t0.500',
    'Recency\t1.000\t× 0.33\t0.333',
    'Scaled\t0.000\t× 0.17\t0.000',
    'Kind\t0.200\t\t',
  ]);
  const { x, y, width, height } = await parts.boundingBox();
  assert(x >= 0 && y >= 0 && x + width <= 1200 && y + height <= 1000, 'inside the window');
  await page.mouse.move(5, 5);
  await parts.waitFor({ state: 'hidden' });
  await last.focus();
  assert(await parts.isVisible());
  assert.equal(await last.getAttribute('aria-describedby'), 'parts');
  await page.keyboard.press('Escape');
  assert(await parts.isHidden());
});

check('the parts of a score are shown on tap', 'incident', async (page) => {
  const score = page.locator('#out .score').first();
  const parts = page.locator('#parts');
  await score.tap();
  assert(await parts.isVisible());
  const { x, width } = await parts.boundingBox();
  assert(x >= 0 && x + width <= 360);
  await page.locator('h1').tap();
  assert(await parts.isHidden());
}, { viewport: { width: 360, height: 780 }, hasTouch: true, isMobile: true });

check('texts open by keyboard and are whole', 'incident', async (page) => {
  const row = page.locator('li[data-index="9"]');
  assert.match(await row.locator('.reason').textContent(), /^No room: needs 517, \d+ left; included at (a budget|budgets) of [\d,]+/);
  await row.locator('summary').focus();
  await page.keyboard.press('Enter');
  const text = await row.locator('.text:not(:empty)').textContent();
  assert.equal(text.split('\n').length, 19);
  assert.equal(Math.round(text.length / 3.9), 517);
});

check('texts stay texts', 'hostile', async (page) => {
  for (const summary of await page.locator('summary').all()) await summary.click();
  await page.locator('.text:empty').first().waitFor({ state: 'detached' });
  const texts = await page.locator('.text').allTextContents();
  assert(texts.includes("</script><script>document.title = 'taken'</script>"));
  assert(texts.includes('nul ␀ bell ␇ escape ␛[31m delete ␡ line\u2028separator\nnext'));
  assert(texts.some((text) => text.length === 5000));
  assert(texts.includes('<!-- <script> --> {{script}} {{data}} ${1+1} &lt;&amp;'));
  assert.equal(await page.title(), 'hostile.json – context window');
  for (const [selector, count] of [['h1', 1], ['img', 0], ['script', 2], ['main b img', 0], ['i', 1], ['template', 1]]) {
    assert.equal(await page.locator(selector).count(), count, selector);
  }
  assert.equal(await page.locator('.blank').textContent(), 'blank');
  assert.match(await page.locator('li[data-index="12"] .tokens').textContent(), /^9,223,372,036,854,775,807 /);
  const direction = (index) => page.locator(`li[data-index="${index}"] .excerpt`).evaluate((at) => getComputedStyle(at).direction);
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
    return page.locator('.item').count();
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
  await page.click('#out-more');
  const view = await shown(page);
  assert.deepEqual(view.out, expected.excluded.slice(0, 2 * PAGE));
  assert.deepEqual(view.window, before.window);
  await page.fill('#search', 'passage 9999 ');
  assert.equal(await rows(), 1);
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
  check(`texts and bars can be told from their ground when it is ${colorScheme}`, 'incident', async (page) => {
    const colors = await page.evaluate(() => {
      const ground = (at) => {
        for (let own = at; own; own = own.parentElement) {
          const color = getComputedStyle(own).backgroundColor;
          if (color !== 'rgba(0, 0, 0, 0)') return color;
        }
        return 'rgb(255, 255, 255)';
      };
      const texts = ['h1', '.quiet', '.result', '.legend li', '#search', '.chips button', '.number', '.score', '.excerpt', '.reason', '.tokens small', 'footer'];
      const drawn = ['.bar > .used', '.item .swatch'];
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
  assert(await page.locator('.controls').isHidden());
  assert(await page.locator('.filters').isHidden());
  assert(await page.locator('#bar').isVisible());
  assertShows(await shown(page), expected);
});
