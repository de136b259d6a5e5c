import { type FileHandle, readdir, readFile, rm } from "node:fs/promises";
import { isIP } from "node:net";
import { join, resolve } from "node:path";
import { nkeys } from "@nats-io/transport-node";
import {
  FILE_MODES,
  makeDirectories,
  writeFileAtomically,
} from "../../model-files/atomic-write.ts";
import { mismatch, PserverError } from "../../protocol/errors.ts";
import { asMap, listField, mapField, textField } from "../../protocol/fields.ts";
import { checkJobName, escapeId } from "../../protocol/names.ts";
import { ADMIN_ID, OBSERVER_ID, permissionsIn } from "../../protocol/permissions.ts";
import { errnoCode, io } from "../../system/file-errors.ts";
import { shellWord } from "../../system/shell-word.ts";
import { quotedPath } from "../broker-config.ts";
import { accountsConfig } from "./accounts-config.ts";
import { makeCertificates } from "./certificates.ts";

/** Users besides trainers. */
const OTHER_USERS = ["host", "answers", "admin", "observer"] as const;
/** One of the users besides trainers. */
export type OtherUser = (typeof OTHER_USERS)[number];

const HOST_NAME =
  /^(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*$/;

/** Names by which programs of this machine reach a broker on it. */
const LOCAL_NAMES = ["localhost", "127.0.0.1", "::1"];

const FORMAT = 1;

/** More than a broker's configuration should hold. */
const TRAINERS_MAX = 16_384;
const JOBS_MAX = 1_024;

/** Seconds for a TLS handshake: the broker's default of 2 is short for a busy machine. */
const HANDSHAKE_S = 20;

/** Who is to get in. */
export interface AuthSettings {
  readonly job: string;
  /** Ids of trainers, each of which gets a key of its own. */
  readonly trainers: readonly string[];
  /** Host names and IP addresses of brokers besides those of loopback. */
  readonly names: readonly string[];
}

/** Who else is to get in, and where. */
export interface AuthAdditions {
  readonly trainers?: readonly string[];
  readonly jobs?: readonly string[];
}

/** Public keys by user. */
interface PublicKeys {
  readonly others: Readonly<Record<OtherUser, string>>;
  readonly trainers: ReadonlyMap<string, string>;
}

/** The file that lists the users. It is written last: without it the directory is not complete. */
const LIST = "auth.json";

/**
 * A directory with all that keeps strangers out of the brokers of a job, and of others that share its users:
 * `broker.conf`, the configuration that brokers include; an authority and the brokers' certificate; and the key of every
 * user, with a file of variables for those who connect as trainers do. Only the owner may read the files.
 */
export class AuthDirectory {
  readonly path: string;
  /** The jobs that the users are for; that of the variables comes first. */
  readonly jobs: readonly [string, ...string[]];
  readonly #keys: PublicKeys;

  private constructor(path: string, jobs: AuthDirectory["jobs"], keys: PublicKeys) {
    this.path = path;
    this.jobs = jobs;
    this.#keys = keys;
  }

  /**
   * Makes the directory's files.
   * @param force whether files that are there are replaced; all keys are then new ones.
   * @throws BAD_VALUE if there are files and `force` is false, for a trainer that is given twice or has the id of
   * another user; BAD_NAME, UNSUPPORTED (no openssl), IO, DISK_FULL.
   */
  static async make(path: string, settings: AuthSettings, force: boolean): Promise<AuthDirectory> {
    const directory = resolve(path);
    const job = checkJobName(settings.job);
    checkIds(settings.trainers, []);
    const names = [...new Set([...LOCAL_NAMES, ...settings.names.map(checkName)])];
    if (!force && (await filesOf(directory)).length > 0) {
      const expected = "no files, or --force, which makes all keys anew";
      throw mismatch("BAD_VALUE", directory, expected, "files");
    }
    // Before anything is removed: it needs a program that may be missing.
    const certificates = await makeCertificates(names);
    await clear(directory);
    await makeDirectories(join(directory, "trainers"));
    await write(join(directory, "ca.pem"), certificates.authority);
    await write(join(directory, "ca.key"), certificates.authorityKey);
    await write(join(directory, "server.pem"), certificates.server);
    await write(join(directory, "server.key"), certificates.serverKey);
    const others: Partial<Record<OtherUser, string>> = {};
    for (const user of OTHER_USERS) {
      others[user] = await writeKey(join(directory, `${user}.nk`));
    }
    const keys = { others: others as Record<OtherUser, string>, trainers: new Map() };
    const made = new AuthDirectory(directory, [job], keys);
    await made.#writeVariables(ADMIN_ID, keys.others.admin);
    await made.#writeVariables(OBSERVER_ID, keys.others.observer);
    return await made.add({ trainers: settings.trainers });
  }

  /**
   * Opens a directory; undefined if it is not there, or empty.
   * @throws BAD_VALUE if it holds something else, BAD_FILE if its list of users is damaged, BAD_VERSION, IO.
   */
  static async open(path: string): Promise<AuthDirectory | undefined> {
    const directory = resolve(path);
    const list = join(directory, LIST);
    let text: string;
    try {
      text = await readFile(list, "utf8");
    } catch (cause) {
      if (errnoCode(cause) !== "ENOENT") return await io("read", list, Promise.reject(cause));
      if ((await filesOf(directory)).length === 0) return undefined;
      const expected = 'all files of "pserver auth init", which makes them anew with --force';
      throw mismatch("BAD_VALUE", directory, expected, `no ${LIST}`);
    }
    const { jobs, keys } = parseList(list, text);
    return new AuthDirectory(directory, jobs, keys);
  }

  /**
   * Gives more trainers keys, and all users the permissions of more jobs; returns the directory with them. Brokers that
   * run must reload their configuration.
   * @throws BAD_VALUE for an id that a user has already, and for a job that is there; BAD_NAME, IO, DISK_FULL.
   */
  async add({ trainers = [], jobs = [] }: AuthAdditions): Promise<AuthDirectory> {
    const { others, trainers: present } = this.#keys;
    checkIds(trainers, [...present.keys()]);
    for (const [at, job] of jobs.map(checkJobName).entries()) {
      if (![...this.jobs, ...jobs.slice(0, at)].includes(job)) continue;
      throw mismatch("BAD_VALUE", "--job", "a job that the users do not have", job);
    }
    const all = new Map(present);
    for (const id of trainers) {
      const key = await writeKey(this.trainerKeyFile(id));
      await this.#writeVariables(id, key);
      all.set(id, key);
    }
    const keys = { others, trainers: all };
    const added = new AuthDirectory(this.path, [...this.jobs, ...jobs], keys);
    await write(this.configFile, added.#config());
    await write(join(this.path, LIST), added.#list());
    return added;
  }

  /** Ids of the trainers that may join. */
  get trainers(): readonly string[] {
    return [...this.#keys.trainers.keys()];
  }

  /** The file that a broker's configuration includes. */
  get configFile(): string {
    return join(this.path, "broker.conf");
  }

  /** The certificate of the authority, by which clients know the brokers. */
  get authorityFile(): string {
    return join(this.path, "ca.pem");
  }

  /** The file with the seed of a user's key. */
  keyFile(user: OtherUser): string {
    return join(this.path, `${user}.nk`);
  }

  /** The file with the seed of a trainer's key. */
  trainerKeyFile(id: string): string {
    return join(this.path, "trainers", `${escapeId(id)}.nk`);
  }

  /** The file with the variables by which a trainer, the observer or the admin connects. */
  variablesFile(id: string): string {
    const directory =
      id === ADMIN_ID || id === OBSERVER_ID ? this.path : join(this.path, "trainers");
    return join(directory, `${escapeId(id)}.env`);
  }

  /**
   * Returns the lines of a `tls` block for the routes between brokers of a cluster: both ends have the certificate of
   * this authority.
   */
  get routesTls(): string {
    return tlsBlock(this.path, [`ca_file: ${quotedPath(this.authorityFile)}`, "verify: true"]);
  }

  #config(): string {
    const { jobs } = this;
    const { others, trainers } = this.#keys;
    const other = (name: OtherUser) => {
      const permissions = permissionsIn(jobs, (job) => job[name]);
      return { name, publicKey: others[name], permissions };
    };
    const accounts = accountsConfig({
      jobs,
      hosts: [other("host"), other("answers"), other("admin")],
      trainers: [
        ...Array.from(trainers, ([id, publicKey]) => {
          return {
            name: `trainer ${escapeId(id)}`,
            publicKey,
            permissions: permissionsIn(jobs, (job) => job.trainer(id)),
          };
        }),
        other("observer"),
      ],
    });
    const lines = [
      `# Users, permissions and TLS of: ${jobs.join(", ")}. Made by "pserver auth", for a broker's configuration to`,
      "# include, after nats.conf. It names files by where they were made.",
      "",
      accounts,
      "",
      tlsBlock(this.path, []),
    ];
    return `${lines.join("\n")}\n`;
  }

  #list(): string {
    const { others, trainers } = this.#keys;
    const keys = Array.from(trainers, ([id, key]) => ({ id, key }));
    const list = { format: FORMAT, jobs: this.jobs, users: others, trainers: keys };
    return `${JSON.stringify(list, null, 2)}\n`;
  }

  async #writeVariables(id: string, publicKey: string): Promise<void> {
    const isTrainer = id !== ADMIN_ID && id !== OBSERVER_ID;
    const seed = isTrainer ? this.trainerKeyFile(id) : join(this.path, `${id}.nk`);
    const file = this.variablesFile(id);
    const variables = {
      PSERVER_JOB: this.jobs[0],
      ...(isTrainer && { PSERVER_TRAINER: id }),
      NATS_NKEY: seed,
      NATS_NKEY_PUBLIC: publicKey,
      NATS_CA: this.authorityFile,
    };
    const lines = Object.entries(variables).map(([name, value]) => `${name}=${shellWord(value)}`);
    const use = `# For a shell: set -a; . ${shellWord(file)}; set +a    and PSERVER_URL=tls://HOST:PORT`;
    await write(file, `${[use, ...lines].join("\n")}\n`);
  }
}

function tlsBlock(directory: string, more: readonly string[]): string {
  const lines = [
    `cert_file: ${quotedPath(join(directory, "server.pem"))}`,
    `key_file: ${quotedPath(join(directory, "server.key"))}`,
    `timeout: ${HANDSHAKE_S}`,
    ...more,
  ];
  return ["tls {", ...lines.map((line) => `  ${line}`), "}"].join("\n");
}

/** @throws BAD_VALUE for an id that is given twice, or is another user's; BAD_NAME for one that is not valid. */
function checkIds(ids: readonly string[], present: readonly string[]): void {
  const taken = new Set<string>([ADMIN_ID, OBSERVER_ID, ...present]);
  for (const id of ids) {
    escapeId(id);
    if (taken.has(id)) {
      throw mismatch(
        "BAD_VALUE",
        "the id of a trainer",
        "one that no user has",
        JSON.stringify(id),
      );
    }
    taken.add(id);
  }
}

/** Makes a key and writes its seed; returns the public key. */
async function writeKey(file: string): Promise<string> {
  const pair = nkeys.createUser();
  await write(file, `${new TextDecoder().decode(pair.getSeed())}\n`);
  return pair.getPublicKey();
}

async function write(file: string, text: string): Promise<void> {
  const content = async (handle: FileHandle): Promise<void> => handle.writeFile(text);
  await writeFileAtomically(file, content, FILE_MODES.model);
}

/** Removes what would be left of an earlier directory. */
async function clear(directory: string): Promise<void> {
  // First: what is left, should this process end here, does not count as complete.
  await io("remove", directory, rm(join(directory, LIST), { force: true }));
  const trainers = join(directory, "trainers");
  const left = (await filesOf(trainers)).filter((name) => /\.(?:nk|env)$/.test(name));
  for (const name of left) {
    await io("remove", directory, rm(join(trainers, name), { force: true }));
  }
}

async function filesOf(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (cause) {
    if (errnoCode(cause) === "ENOENT") return [];
    return await io("read the directory", directory, Promise.reject(cause));
  }
}

/** Returns a name for a certificate. @throws BAD_NAME unless it is a host name or an IP address. */
function checkName(name: string): string {
  if (isIP(name) !== 0 || HOST_NAME.test(name)) return name;
  throw mismatch("BAD_NAME", "--name", "a host name or an IP address", JSON.stringify(name));
}

function parseList(file: string, text: string): { jobs: AuthDirectory["jobs"]; keys: PublicKeys } {
  try {
    const list = asMap(JSON.parse(text), LIST);
    if (list["format"] !== FORMAT) {
      const received = JSON.stringify(list["format"]);
      throw mismatch("BAD_VERSION", `the format of ${file}`, String(FORMAT), received);
    }
    const users = mapField(list, "users");
    const key = (user: OtherUser): string => textField(users, user);
    const others = {
      ...{ host: key("host"), answers: key("answers"), admin: key("admin") },
      observer: key("observer"),
    };
    const trainers = listField(list, "trainers", TRAINERS_MAX).map((entry) => {
      const trainer = asMap(entry, "trainers");
      return [textField(trainer, "id"), textField(trainer, "key")] as const;
    });
    const [first, ...more] = listField(list, "jobs", JOBS_MAX).map((job) => {
      return checkJobName(textField({ job }, "job"));
    });
    if (first === undefined) throw mismatch("BAD_FILE", "jobs", "one or more", "none");
    return { jobs: [first, ...more], keys: { others, trainers: new Map(trainers) } };
  } catch (cause) {
    if (cause instanceof PserverError && cause.code === "BAD_VERSION") throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new PserverError("BAD_FILE", `${file}: ${reason}`, { path: file }, { cause });
  }
}
