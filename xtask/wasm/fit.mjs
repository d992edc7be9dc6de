// Fits a chat with the WebAssembly module: node fit.mjs MODULE CHAT BUDGET. Writes the answer.
import { readFileSync, writeSync } from "node:fs";

const [module, chat, budget] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(readFileSync(module), {});
const { memory, allocate, fit, answer, answer_len } = instance.exports;
const input = readFileSync(chat);
// A call may grow the memory, which detaches its buffer: it is read after each call.
const start = allocate(input.length);
new Uint8Array(memory.buffer, start, input.length).set(input);
const status = fit(BigInt(budget));
const [from, length] = [answer(), answer_len()];
const bytes = new Uint8Array(memory.buffer, from, length);
writeSync(1, bytes);
process.exitCode = status;
