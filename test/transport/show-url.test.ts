// Proves that no message shows credentials of an address: every function that refuses one is given
// addresses with made-up passwords, raw and escaped, well-formed or not, and no piece of three
// characters of a password may stand in what it throws.
import fc from "fast-check";
import { expect, test } from "vitest";
import { parseEtcdEndpoints, toAdvertised } from "../../src/actors/job/etcd-space.ts";
import { resolveSettings } from "../../src/client/wire/broker-settings.ts";
import { showUrl } from "../../src/transport/connection.ts";

const ALPHABET = [..."XYZ789/@:?#%,&=+ \\\"'[]\n\u001bé"];
const passwords = fc.string({ unit: fc.constantFrom(...ALPHABET), minLength: 3, maxLength: 24 });

/** Addresses that a person may write with a password, rightly and wrongly. */
const SHAPES: readonly ((password: string) => string)[] = [
  (password) => `nats://alice:${password}@localhost:4222`,
  (password) => `tls://${password}@localhost`,
  (password) => `alice:${password}@localhost`,
  (password) => `nats://bob:pw@other,nats://alice:${password}@localhost`,
  (password) => `nats://alice:${password}@localhost/path`,
  (password) => `nats://alice:${password}@localhost:port`,
  (password) => `nats://alice:${encodeURIComponent(password)}@`,
  (password) => `nats://alice:${encodeURIComponent(password)}@localhost/path`,
  (password) => `http://alice:${password}@localhost:2379`,
];

/** Between texts that are looked through together: in no password, so that no piece of one can reach across it. */
const BORDER = "|";

/** All that is told of an error. */
function told(run: () => unknown): string {
  try {
    run();
    return "";
  } catch (error) {
    const { message, details } = error as Error & { readonly details: object };
    return [message, ...Object.values(details).flat()].join(BORDER);
  }
}

function pieces(password: string): string[] {
  return Array.from({ length: password.length - 2 }, (_, i) => password.slice(i, i + 3));
}

function messagesOf(url: string): string {
  const messages = [
    told(() => resolveSettings({ url }, {})),
    told(() => resolveSettings({ url: [url, "tls://other"] }, {})),
    told(() => parseEtcdEndpoints(url)),
    told(() => toAdvertised(url)),
    showUrl(url),
  ];
  return messages.join(BORDER);
}

test("no piece of a password is in any message", () => {
  // What messages say of any address: its letter is in no password.
  const always = SHAPES.map((shape) => messagesOf(shape("Q/Q"))).join(BORDER);
  const check = (password: string, shape: (typeof SHAPES)[number]): void => {
    const url = shape(password);
    const messages = messagesOf(url);
    for (const piece of pieces(password).filter((text) => !always.includes(text))) {
      expect(messages, JSON.stringify(url)).not.toContain(piece);
    }
  };
  fc.assert(fc.property(passwords, fc.constantFrom(...SHAPES), check), { numRuns: 5_000 });
});

test.each([
  ["nats://alice:pass/word@host", "nats://…@host"],
  ["nats://alice:p@ss@host:4222", "nats://…@host:4222"],
  ["nats://alice:pass#word@[::1]:4222", "nats://…@[::1]:4222"],
  ["nats://alice:password", "nats://…"],
  ["nats://host:4222", "nats://host:4222"],
  ["host", "host"],
  ["nats://host/alice:pw", "nats://…"],
])("%s is shown as %s", (url, shown) => {
  expect(showUrl(url)).toBe(shown);
});
