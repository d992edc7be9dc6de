// Takes the pictures of the documentation: node screenshot.mjs DIRECTORY

import path from 'node:path';
import { open, start } from './browser.mjs';

const directory = process.argv[2];
const DESKTOP = { viewport: { width: 1200, height: 860 } };
const browser = await start();
for (const [name, options] of [
  ['explain-light', DESKTOP],
  ['explain-dark', { ...DESKTOP, colorScheme: 'dark' }],
  ['explain-phone', { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true }],
]) {
  const { page, context } = await open(browser, 'replayed', options);
  await page.screenshot({ path: path.join(directory, `${name}.png`) });
  await context.close();
}
await browser.close();
