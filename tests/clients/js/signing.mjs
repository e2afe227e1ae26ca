// Signed cards: those of Sabir are verified by the SDK, and those of the SDK by Sabir.
//
// The SDK signs and verifies cards as JSON: of a card as its resolver gives it, it would leave out the security schemes.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { AgentCard, generateAgentCardSignature, verifyAgentCardSignature } from '@a2a-js/sdk';

/** The key that a signature names, from where it says. */
const publicKey = async (kid, jku) => (await (await fetch(jku)).json()).keys.find((key) => key.kid === kid);

const copyOf = (card) => AgentCard.fromJSON(AgentCard.toJSON(card));

/** Runs `sabir card URL --verify`: the exit code and what it printed. */
const sabirVerifies = (url) =>
  new Promise((resolve) => {
    execFile(process.env.SABIR, ['card', url, '--verify'], (error, out) =>
      resolve({ code: error?.code ?? 0, printed: out ? JSON.parse(out) : String(error) }),
    );
  });

export const signing = {
  'the SDK verifies the card of Sabir': async ({ card }) => {
    assert.ok(card.signatures.length > 0, 'it is signed');
    await verifyAgentCardSignature(publicKey)(AgentCard.toJSON(card));
  },

  'the SDK refuses a card that was changed': async ({ card }) => {
    const changed = copyOf(card);
    changed.supportedInterfaces[0].url += 'x';
    // The SDK prints what it does not accept.
    const { debug } = console;
    console.debug = () => {};
    try {
      await assert.rejects(verifyAgentCardSignature(publicKey)(AgentCard.toJSON(changed)), /No valid signatures/);
    } finally {
      console.debug = debug;
    }
  },

  'Sabir verifies cards of the SDK': async ({ card }) => {
    const documents = {};
    const server = createServer(({ url }, response) => response.end(JSON.stringify(documents[url])));
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const url = `http://127.0.0.1:${server.address().port}`;
      const algorithms = { ES256: ['ec', { namedCurve: 'P-256' }], EdDSA: ['ed25519', {}] };
      for (const [alg, [kind, options]] of Object.entries(algorithms)) {
        const pair = generateKeyPairSync(kind, options);
        const unsigned = copyOf(card);
        unsigned.signatures = [];
        unsigned.description = 'piers 1 to 9 – é 😀';
        const params = { numbers: [0, -0, 1e21, 1e-7, 0.1, 5e-324], '\ufb33': 1, '😀': 2, empty: { list: [], text: '' } };
        unsigned.capabilities.extensions.push({ uri: 'https://example.com/e', description: '', required: false, params });
        const bearer = { description: 'a token', scheme: 'Bearer', bearerFormat: '' };
        unsigned.securitySchemes.bearer = { scheme: { $case: 'httpAuthSecurityScheme', value: bearer } };
        unsigned.securityRequirements.push({ schemes: { bearer: { list: [] } } });
        const header = { alg, kid: 'k', jku: `${url}/keys`, typ: 'JOSE' };
        const sign = generateAgentCardSignature(pair.privateKey, header);
        documents['/.well-known/agent-card.json'] = await sign(AgentCard.toJSON(unsigned));
        documents['/keys'] = { keys: [{ ...pair.publicKey.export({ format: 'jwk' }), kid: 'k', alg, use: 'sig' }] };
        const { code, printed } = await sabirVerifies(url);
        assert.equal(code, 0, `${alg}: ${JSON.stringify(printed)}`);
        assert.equal(printed.signatures[0].covers, '1.0');
        documents['/.well-known/agent-card.json'].securitySchemes.bearer.httpAuthSecurityScheme.scheme = 'Basic';
        assert.equal((await sabirVerifies(url)).printed.signatures[0].verdict, 'invalid');
      }
    } finally {
      server.close();
      server.closeAllConnections();
    }
  },
};
