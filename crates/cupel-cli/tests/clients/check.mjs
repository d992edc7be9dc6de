// Parses fitted chats with the AI SDK, and sends them to a mock model.
//
// Usage: node check.mjs FOLDER. A file is called FORMAT.BUDGET.json.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { convertToModelMessages, generateText, modelMessageSchema, safeValidateUIMessages } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';

const model = () =>
  new MockLanguageModelV3({
    doGenerate: async () => ({
      content: [{ type: 'text', text: 'ok' }],
      finishReason: { unified: 'stop', raw: undefined },
      usage: { inputTokens: {}, outputTokens: {} },
      warnings: [],
    }),
  });

const send = async messages => {
  modelMessageSchema.array().parse(messages);
  // Fails for calls without results.
  await generateText({ model: model(), messages, allowSystemInMessages: true });
};

const checks = {
  'vercel-model': request => send(request.messages),
  'vercel-ui': async request => {
    const result = await safeValidateUIMessages({ messages: request });
    if (!result.success) throw result.error;
    await send(await convertToModelMessages(result.data));
  },
};

const folder = process.argv[2];
const counts = {};
for (const file of readdirSync(folder).sort()) {
  const name = file.split('.')[0];
  if (!(name in checks)) continue;
  try {
    await checks[name](JSON.parse(readFileSync(join(folder, file), 'utf8')));
  } catch (error) {
    console.error(`${file}: ${error.stack}`);
    process.exit(1);
  }
  counts[name] = (counts[name] ?? 0) + 1;
}
const missing = Object.keys(checks).filter(name => !(name in counts));
if (missing.length > 0) {
  console.error(`no fitted chats: ${missing.join(', ')}`);
  process.exit(1);
}
console.log(Object.entries(counts).map(([name, count]) => `${name} ${count}`).join(', '));
