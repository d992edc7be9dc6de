// Takes the picture of the documentation: node screenshot.mjs FILE

import { open, start } from './browser.mjs';

const browser = await start();
const { page } = await open(browser, 'incident', { viewport: { width: 1200, height: 900 } });
await page.locator('#window .score').nth(2).hover();
await page.screenshot({ path: process.argv[2] });
await browser.close();
