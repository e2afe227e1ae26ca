// The official JavaScript SDKs of MCP in front of a real server: @modelcontextprotocol/client in both eras of the protocol, and its
// predecessor @modelcontextprotocol/sdk.
//
//     node suite.mjs --sabir FILE --python FILE --agent FILE [--only WORD]
//
// `agent` is the ACP agent that asks for permission, and `python` runs it. A case is an exported function of a module, named for the
// behaviour that it shows; it runs once for each client.

import * as access from './access.mjs';
import * as artifacts from './artifacts.mjs';
import * as asking from './asking.mjs';
import * as codingAgent from './coding_agent.mjs';
import * as interruptions from './interruptions.mjs';
import * as questions from './questions.mjs';
import * as restarts from './restarts.mjs';
import { SDKS } from './sdks.mjs';
import { Server, Stage } from './stage.mjs';
import * as tools from './tools.mjs';

const MODULES = { tools, asking, questions, interruptions, artifacts, coding_agent: codingAgent, restarts, access };
// For a case as a whole; what it waits for has a shorter limit.
const LIMIT_MS = 120_000;

const programs = commandLine();
const server = await Server.start(programs);
process.on('SIGTERM', () => Promise.all([...Server.all].map((one) => one.close())).finally(() => process.exit(143)));
let [passed, failed] = [0, 0];
for (const [client, sdk] of Object.entries(SDKS)) {
  for (const [place, module] of Object.entries(MODULES)) {
    for (const [title, body] of Object.entries(module)) {
      const name = `${place}, ${client}: ${title.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)}`;
      if (!name.includes(programs.only)) continue;
      const reason = await run(new Stage(programs, server, sdk), body);
      if (reason) failed += 1;
      else passed += 1;
      console.log(reason ? `not ok - ${name}: ${reason}` : `ok - ${name}`);
    }
  }
}
await server.close();
console.log(`${passed} passed, ${failed} failed`);
// A suite in which nothing ran has shown nothing.
process.exit(failed > 0 || passed === 0 ? 1 : 0);

/** Why the case failed; undefined: it passed. */
async function run(stage, body) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${LIMIT_MS / 1000} s`)), LIMIT_MS);
  });
  try {
    await Promise.race([body(stage), limit]);
    return undefined;
  } catch (error) {
    const place = /([a-z_]+\.mjs:\d+)/.exec(
      (error.stack ?? '').split('\n').find((line) => line.includes('.mjs:') && !/node_modules|stage\.mjs/.test(line)) ?? '',
    );
    return `${place ? `${place[1]}: ` : ''}${error.message ?? error}`.replace(/\s+/g, ' ').slice(0, 700);
  } finally {
    clearTimeout(timer);
    await stage.close();
  }
}

function commandLine() {
  const given = process.argv.slice(2);
  const value = (flag) => (given.includes(flag) ? given[given.indexOf(flag) + 1] : undefined);
  const [sabir, python, agent] = ['--sabir', '--python', '--agent'].map(value);
  if (!sabir || !python || !agent) {
    console.error('usage: suite.mjs --sabir FILE --python FILE --agent FILE [--only WORD]');
    process.exit(2);
  }
  return { sabir, python, agent, only: value('--only') ?? '' };
}
