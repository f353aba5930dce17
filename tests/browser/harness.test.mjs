// What the tests themselves leave behind: nothing, though jobs outlive whoever started them.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, chmodSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { build, Instance, until } from './harness.mjs';

const words = (pid) => { try { return readFileSync(`/proc/${pid}/cmdline`, 'utf8'); } catch { return ''; } };
const named = (text) => readdirSync('/proc').filter((n) => /^\d+$/.test(n) && words(n).includes(text));

test('harness: a stopped instance leaves no job behind', async () => {
  const simDir = mkdtempSync(join(tmpdir(), 'gpumgr-browser-sim-'));
  chmodSync(simDir, 0o755);
  const sim = (...w) => new Promise((done, fail) => execFile(join(build, 'gpumgr'), ['sim', ...w, '--sim-dir', simDir], (e, out) => (e ? fail(e) : done(out))));
  await sim('start', '--gpus', '1');
  process.env.GPUSIM_DIR = simDir;
  try {
    const gpumgr = await Instance.start('--gpu-library', join(build, 'sim/libnvidia-ml.so.1'), '--gpu-devices', join(simDir, 'dev'), '--guard.lock-dir', simDir, '--jobs.run-as', 'nobody', '--engines.docker', '', '--engines.podman', '');
    const mark = `600.${process.pid}`;
    await gpumgr.command('submit', '--dir', gpumgr.dir, '--', 'sh', '-c', `trap '' TERM; sleep ${mark} & setsid sleep ${mark} & wait`);
    await until('both run', () => named(mark).length >= 3);
    await gpumgr.stop();
    assert.deepEqual(named(`${gpumgr.dir}/`), [], 'shims');
    assert.deepEqual(named(mark), [], 'what they had started');
    assert.ok(!existsSync(gpumgr.dir));
  } finally {
    await sim('stop');
    rmSync(simDir, { recursive: true, force: true });
  }
});
