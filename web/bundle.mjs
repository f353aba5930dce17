// Makes the dashboard: bundles src/ with esbuild, names each file by the hash of its content, adds a gzip'd copy, and writes
// one C source whose table holds them all (struct page_asset in src/server/pages.h). Nothing of it is fetched at run time.
//
// usage: node bundle.mjs OUT_DIR OUT_C OUT_DEPFILE
import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { constants, gzipSync } from 'node:zlib';

const here = dirname(fileURLToPath(import.meta.url));
const [outDir, outC, outDeps] = process.argv.slice(2).map((p) => resolve(p));

const types = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  svg: 'image/svg+xml',
};

const hashOf = (bytes) => createHash('sha256').update(bytes).digest('hex').slice(0, 16);

async function bundle() {
  const made = await build({
    absWorkingDir: here,
    entryPoints: [{ in: 'src/main.tsx', out: 'app' }, { in: 'src/style/all.css', out: 'app' }],
    outdir: 'out',
    write: false,
    bundle: true,
    minify: true,
    format: 'esm',
    target: ['es2021', 'chrome100', 'firefox100', 'safari15'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    charset: 'utf8',
    metafile: true,
    logLevel: 'warning',
  });
  const inputs = Object.keys(made.metafile.inputs).map((p) => resolve(here, p));
  return { files: made.outputFiles.map((f) => ({ ext: f.path.split('.').pop(), bytes: Buffer.from(f.contents) })), inputs };
}

const { files, inputs } = await bundle();
const assets = [];
const named = {};
for (const f of files) {
  named[f.ext] = `assets/app-${hashOf(f.bytes)}.${f.ext}`;
  assets.push({ path: named[f.ext], ext: f.ext, bytes: f.bytes, isForever: true });
}
const icon = readFileSync(join(here, 'src/icon.svg'));
named.svg = `assets/icon-${hashOf(icon)}.svg`;
assets.push({ path: named.svg, ext: 'svg', bytes: icon, isForever: true });
const page = readFileSync(join(here, 'src/index.html'), 'utf8')
  .replace('app.css', named.css).replace('app.js', named.js).replace('icon.svg', named.svg);
assets.push({ path: 'index.html', ext: 'html', bytes: Buffer.from(page), isForever: false });

rmSync(outDir, { recursive: true, force: true });
mkdirSync(join(outDir, 'assets'), { recursive: true });
let asm = '';
let declarations = '';
let rows = '';
let total = 0;
assets.forEach((a, i) => {
  const packed = gzipSync(a.bytes, { level: constants.Z_BEST_COMPRESSION });
  total += packed.length;
  const plainFile = join(outDir, a.path);
  writeFileSync(plainFile, a.bytes);
  writeFileSync(`${plainFile}.gz`, packed);
  for (const [name, file] of [[`page_${i}`, plainFile], [`page_${i}_gz`, `${plainFile}.gz`]]) {
    asm += `    ".global ${name}\\n.hidden ${name}\\n${name}:\\n.incbin \\"${file.replace(/\\/g, '\\\\\\\\').replace(/"/g, '\\\\\\"')}\\"\\n.byte 0\\n"\n`;
    declarations += `extern const unsigned char ${name}[];\n`;
  }
  rows += `    {"${a.path}", "${types[a.ext]}", "\\"${hashOf(a.bytes)}\\"", page_${i}, ${a.bytes.length}, page_${i}_gz, ${packed.length}, ${a.isForever}},\n`;
});
writeFileSync(outC, `/* Made by web/bundle.mjs. */
#include "server/pages.h"

__asm__(".pushsection .rodata\\n"
${asm}    ".popsection\\n");

${declarations}
const struct page_asset page_assets[] = {
${rows}};
const size_t page_asset_count = ${assets.length};
`);
const deps = [...inputs, join(here, 'src/index.html'), join(here, 'src/icon.svg')];
writeFileSync(outDeps, `${outC}: ${deps.map((p) => p.replace(/ /g, '\\ ')).join(' ')}\n`);
const size = (ext) => (assets.find((a) => a.ext === ext)?.bytes.length / 1024).toFixed(0);
console.log(`web: ${size('js')} KiB script, ${size('css')} KiB style; ${(total / 1024).toFixed(1)} KiB gzip'd in all`);
