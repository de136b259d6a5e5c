// Proves that the commands which a page starts reach the broker of the page's server, with its credentials and no
// others: those that are given replace what the environment says of the same.
import { expect, test } from "vitest";
import { variablesOf } from "../../src/cli/commands-of-page.ts";
import type { ConnectionOverrides } from "../../src/client/wire/broker-settings.ts";

function variables(
  broker: ConnectionOverrides,
  environment: Readonly<Record<string, string>>,
): Record<string, string> {
  return variablesOf({ broker, environment, asker: "observer" });
}

test("without settings the environment says all", () => {
  const environment = { PATH: "/bin", PSERVER_URL: "nats://a", NATS_TOKEN: "t" };
  expect(variables({}, environment)).toEqual(environment);
});

test("credentials that are given replace all others, and TLS files all others", () => {
  const environment = {
    ...{ PATH: "/bin", NATS_TOKEN: "t", NATS_USER: "u", NATS_PASSWORD: "p", NATS_CREDS: "c" },
    ...{ NATS_CERT: "cert", NATS_KEY: "key", NATS_CA: "ca" },
  };
  const given = { url: ["tls://a", "tls://b"], nkey: "host.nk", tlsCa: "ca.pem" };
  expect(variables(given, environment)).toEqual({
    PATH: "/bin",
    PSERVER_URL: "tls://a,tls://b",
    NATS_NKEY: "host.nk",
    NATS_CA: "ca.pem",
  });
  expect(variables({ token: "other" }, environment)).toEqual({
    ...{ PATH: "/bin", NATS_TOKEN: "other" },
    ...{ NATS_CERT: "cert", NATS_KEY: "key", NATS_CA: "ca" },
  });
});

test("the password of a user that is given may be in the environment", () => {
  const environment = { NATS_PASSWORD: "p", NATS_TOKEN: "t" };
  expect(variables({ user: "u" }, environment)).toEqual({ NATS_USER: "u", NATS_PASSWORD: "p" });
  expect(variables({ user: "u", password: "q" }, environment)).toEqual({
    NATS_USER: "u",
    NATS_PASSWORD: "q",
  });
});
