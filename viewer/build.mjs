// Makes the page: script and style inside one file, so that the program can carry it and a saved
// page needs nothing else.
//   node build.mjs OUTPUT.html
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { build } from "esbuild";

const output = process.argv[2] ?? "page.html";
async function bundle(entry) {
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2022",
    legalComments: "inline",
    logLevel: "warning",
  });
  return result.outputFiles[0].text.trim();
}

// inside <script> these two must not stand
const script = (await bundle("src/main.js")).replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
const style = await bundle("src/style.css");
const hash = createHash("sha256").update(script).digest("base64");
const policy =
  `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; ` +
  `img-src 'self' data: blob:; connect-src 'self' data: blob:; base-uri 'none'; form-action 'none'`;
const page = readFileSync("src/index.html", "utf8")
  .replace("<!--policy-->", () => `<meta http-equiv="Content-Security-Policy" content="${policy}">`)
  .replace("<!--style-->", () => `<style>${style}</style>`)
  .replace("<!--script-->", () => `<script>${script}</script>`);
mkdirSync(dirname(output), { recursive: true });
writeFileSync(output, page);
