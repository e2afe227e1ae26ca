// A server for one case, with a configuration of its own.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** Runs `body` with the address of the server, and stops it afterwards. */
export async function serving(configuration, body) {
  const folder = await mkdtemp(join(tmpdir(), 'sabir-own-'));
  await writeFile(join(folder, 'sabir.toml'), configuration);
  const words = ['serve', '--listen', '127.0.0.1:0', '--store', 'memory:'];
  const child = spawn(process.env.SABIR, words, { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(child, 'exit');
  try {
    const [line] = await once(createInterface(child.stdout), 'line');
    return await body(JSON.parse(line).url);
  } finally {
    child.kill();
    await ended;
    await rm(folder, { recursive: true });
  }
}
