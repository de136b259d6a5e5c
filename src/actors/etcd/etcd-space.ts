import { randomUUID } from "node:crypto";
import { PserverError } from "../../protocol/index.ts";
import { EtcdClient } from "./etcd-client.ts";
import { checkSpaceId, EtcdKeys, type EtcdSettings, parseEtcdEndpoints } from "./etcd-keys.ts";

/** The keys of a job in one etcd, all under one prefix. */
export interface EtcdSpace {
  readonly client: EtcdClient;
  readonly keys: EtcdKeys;
  /** Identity of this etcd and prefix: unique, and the same for all who use them. */
  readonly id: string;
}

const TRIES_MAX = 8;

/**
 * Connects to etcd and reads its identity, which the first to connect writes. An address identifies
 * nothing: `127.0.0.1` is another etcd on every machine.
 * @throws BAD_VALUE for invalid settings, NO_ETCD if no address answers in time, DENIED,
 * JOB_EXISTS if hosts of another job are published there.
 */
export async function openEtcdSpace(
  settings: EtcdSettings,
  job: string,
  timeoutMs: number,
): Promise<EtcdSpace> {
  const keys = new EtcdKeys(job, settings.prefix);
  const endpoints = parseEtcdEndpoints(settings.endpoints);
  const client = await EtcdClient.open({ endpoints, timeoutMs });
  try {
    checkPublishedJob((await client.read(keys.job))?.value, job, keys);
    return { client, keys, id: await identify(client, keys.id) };
  } catch (error) {
    client.close();
    throw error;
  }
}

async function identify(client: EtcdClient, key: string): Promise<string> {
  for (let tries = 1; tries <= TRIES_MAX; tries++) {
    const found = await client.read(key);
    if (found !== undefined) return checkSpaceId(found.value, key);
    const id = randomUUID();
    if (await client.swap([{ key, revision: undefined }], [{ kind: "put", key, value: id }]))
      return id;
  }
  throw new PserverError("BUSY", `etcd key ${key}: changed by others ${TRIES_MAX} times in a row`, {
    key,
  });
}

/** Checks that `published` is this job, or absent; @throws JOB_EXISTS otherwise. */
export function checkPublishedJob(
  published: string | undefined,
  job: string,
  { job: key }: EtcdKeys,
): void {
  if (published === undefined || published === job) return;
  throw new PserverError(
    "JOB_EXISTS",
    `etcd key ${key}: hosts of job ${JSON.stringify(published)} are alive under this prefix; ` +
      `received job ${JSON.stringify(job)}. Give each job an --etcd-prefix of its own.`,
    { expected: published, received: job },
  );
}
