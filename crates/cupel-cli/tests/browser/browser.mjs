// Starts Chromium and opens pages in it.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const directory = process.env.CUPEL_PAGES ?? '';
assert(directory, 'CUPEL_PAGES names the directory with the pages; `cargo xtask browser` sets it');

export const expectations = JSON.parse(fs.readFileSync(path.join(directory, 'expectations.json'), 'utf8'));

export const start = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });

/**
 * Opens a page and watches it: whatever it says on the console, fails with, or asks the network for ends
 * up in `complaints`.
 */
export async function open(browser, name, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 1000 }, ...options });
  const page = await context.newPage();
  const complaints = [];
  const url = pathToFileURL(path.resolve(directory, `${name}.html`)).href;
  page.on('console', (message) => complaints.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => complaints.push(`error: ${error}`));
  page.on('dialog', (dialog) => complaints.push(`dialog: ${dialog.message()}`));
  page.on('request', (request) => request.url() === url || complaints.push(`request: ${request.url()}`));
  const start = performance.now();
  await page.goto(url);
  await page.waitForFunction(() => document.getElementById('result')?.textContent);
  return { page, context, complaints, opened: Math.round(performance.now() - start) };
}

export const screenshot = (page, name) => page.screenshot({ path: path.join(directory, `${name}.png`) });
