import { createInbox, type NatsConnection, type Subscription } from "@nats-io/transport-node";
import { ensureError, type JobSubjects, type PserverError } from "../../protocol/index.ts";
import {
  asksForTls,
  type ConnectionSettings,
  openConnection,
  parseBrokerAddresses,
} from "../../transport/connection.ts";
import { type Clock, mapConcurrently, Repeater, systemClock } from "../concurrent.ts";
import type { Leases, StoredLease } from "../job/leases.ts";

/** Pause between two questions for the other hosts. */
const POLL_MS = 250;

/** Pause while one of them seems to be gone. */
const AGAIN_MS = 100;

/**
 * How long nobody may listen before a host's leases are ended: long enough for a connection to be made anew, which is
 * tried at once and then twice in a second.
 */
const GONE_MS = 1_000;

/** Time until a host that could not be proven to be gone is looked at again. */
const UNPROVEN_MS = 5_000;

/** Pause after the store of the leases has not answered. */
const RETRY_MS = 1_000;

/** How long connecting to a broker may take that is asked only once. */
const VISIT_MS = 1_000;

const NOTHING = new Uint8Array();

/** Asks brokers whether anybody listens to the subject of a run of a host. */
export interface PresenceAsker {
  /** Whether the broker of this host's connection says that nobody does; false if that connection is lost. */
  isAbsent(run: string): Promise<boolean>;
  /**
   * Whether each of these brokers, asked itself, says so. Another one cannot: it may have been parted from them. False
   * if one of them cannot be asked, and if there are none.
   */
  isAbsentAt(run: string, brokers: readonly string[]): Promise<boolean>;
}

/** Dependencies of {@link BrokerAsker}. */
interface BrokerAskerDeps {
  readonly connection: NatsConnection;
  /** Settings of `connection`, by which other brokers of its cluster are reached, too. */
  readonly settings: ConnectionSettings;
  readonly subjects: JobSubjects;
  /** Name and inbox of connections that are made to ask. */
  readonly role: { readonly name: string; readonly inboxPrefix: string };
}

/** Asks over the connection of a host, and other brokers of the cluster over connections that are made for it. */
export class BrokerAsker implements PresenceAsker {
  readonly #deps: BrokerAskerDeps;

  constructor(deps: BrokerAskerDeps) {
    this.#deps = deps;
  }

  async isAbsent(run: string): Promise<boolean> {
    return (await this.#ask(this.#deps.connection, run)).isAbsent;
  }

  async isAbsentAt(run: string, brokers: readonly string[]): Promise<boolean> {
    if (brokers.length === 0) return false;
    const here = await this.#ask(this.#deps.connection, run);
    if (!here.isAbsent) return false;
    const absent = new Set([here.broker]);
    if (brokers.some((broker) => !absent.has(broker))) {
      const visited = await Promise.all(this.#addresses().map((each) => this.#visit(each, run)));
      for (const found of visited) if (found?.isAbsent) absent.add(found.broker);
    }
    return brokers.every((broker) => absent.has(broker));
  }

  /**
   * Asks over a connection. The broker handles what it is sent in order: that nobody listens, it says before it answers
   * the PING that follows. So no answer is waited for, and nothing depends on how fast anybody is.
   */
  async #ask(connection: NatsConnection, run: string): Promise<Finding> {
    const broker = connection.info?.server_id;
    const reply = createInbox(this.#deps.role.inboxPrefix);
    let isAbsent = false;
    let answers: Subscription | undefined;
    try {
      answers = connection.subscribe(reply, {
        callback: (_error, { headers }) => {
          isAbsent = headers?.code === NO_RESPONDERS;
        },
      });
      connection.publish(this.#deps.subjects.presence(run), NOTHING, { reply });
      await connection.flush();
    } catch {
      // The connection was lost, or closed.
      return NOTHING_FOUND;
    } finally {
      answers?.unsubscribe();
    }
    return connection.info?.server_id === broker ? { broker, isAbsent } : NOTHING_FOUND;
  }

  /** Asks the broker at an address; undefined if it cannot be reached. */
  async #visit(address: string, run: string): Promise<Finding | undefined> {
    const { settings, role } = this.#deps;
    let connection: NatsConnection | undefined;
    try {
      const visiting = { ...settings, servers: [address], timeoutMs: VISIT_MS };
      connection = await openConnection(visiting, role);
      return await this.#ask(connection, run);
    } catch {
      // Whether the host is there is then not known.
      return undefined;
    } finally {
      await connection?.close();
    }
  }

  /** The brokers that this host was told of, by its settings and by its broker. */
  #addresses(): string[] {
    const { connection, settings } = this.#deps;
    const scheme = asksForTls(parseBrokerAddresses(settings.servers)) ? "tls" : "nats";
    const told = (connection.info?.connect_urls ?? []).map((each) => `${scheme}://${each}`);
    return [...new Set([...settings.servers, ...told])];
  }
}

/** What a broker has said. */
interface Finding {
  /** Its id. */
  readonly broker: string | undefined;
  readonly isAbsent: boolean;
}

/** What is found by a connection that was lost meanwhile. */
const NOTHING_FOUND: Finding = { broker: undefined, isAbsent: false };

/** Status of the message by which a broker says that nobody listens. */
const NO_RESPONDERS = 503;

/** Dependencies of {@link GoneHosts}. */
interface GoneHostsDeps {
  readonly leases: Leases;
  readonly asker: PresenceAsker;
  /** Prefixes of the keys of all leases that hosts hold; the first one is that of their own. */
  readonly prefixes: readonly [string, ...string[]];
  /** `owner` in the leases of this run of this host. */
  readonly run: string;
  /** Called with the key of the own lease of a host whose leases were ended, here or by others. */
  readonly onEnded: (key: string) => Promise<void>;
  readonly onError: (error: PserverError) => void;
  readonly clock?: Clock;
}

/** A run of another host. */
interface OtherRun {
  /** Key of the host's own lease. */
  readonly key: string;
  /** Since when nobody has listened; undefined while somebody does, or no answer has come. */
  absentSince: number | undefined;
  /** Before this time nothing is done about it. */
  notBefore: number;
}

/**
 * Ends the leases of hosts whose connections are closed, so that nobody waits until the leases have run out.
 *
 * A slow host is not gone, and neither is one that another broker does not know of: only the brokers to which the
 * host's connections led, by its leases, can say that they are closed, and they must say so for a second. Each lease is
 * then ended by compare-and-swap, at the revision that was read before the brokers were asked. A host that is alive
 * answers on a connection that was made anew only after it has renewed its leases, so either that or this fails. A run
 * of a host that comes back afterwards is left to its leases.
 */
export class GoneHosts {
  readonly #deps: GoneHostsDeps;
  readonly #clock: Clock;
  readonly #others: Map<string, OtherRun> = new Map();
  /** Runs that were found to be gone. */
  readonly #ended: Set<string> = new Set();
  #isStale = true;
  readonly #repeater: Repeater;

  constructor(deps: GoneHostsDeps) {
    this.#deps = deps;
    this.#clock = deps.clock ?? systemClock;
    this.#repeater = new Repeater(() => this.#round(), this.#clock);
  }

  /** Begins to ask, until {@link GoneHosts.stop}. */
  start(): void {
    void this.#repeater.start();
  }

  /** Has the other hosts looked up again: one has joined or left. */
  changed(): void {
    this.#isStale = true;
  }

  /** Forgets how long nobody has listened: this host's own connection was lost. */
  disconnected(): void {
    for (const other of this.#others.values()) other.absentSince = undefined;
  }

  /** Asks no more, and waits for a round under way. */
  async stop(): Promise<void> {
    await this.#repeater.stop();
  }

  /**
   * Ends the leases of the run of a host that holds its own lease `key`, if that run is gone; returns whether it was.
   * It takes a second if so.
   */
  async endHolder(key: string): Promise<boolean> {
    const { leases, asker } = this.#deps;
    const run = (await leases.read(key))?.owner;
    if (run === undefined) return true;
    const untilMs = this.#clock.now() + GONE_MS;
    while (await asker.isAbsent(run)) {
      if (this.#clock.now() >= untilMs) return await this.#end(run);
      await new Promise<void>((resolve) => this.#clock.after(AGAIN_MS, resolve));
    }
    return false;
  }

  async #round(): Promise<number> {
    const { asker, onError } = this.#deps;
    try {
      if (this.#isStale) await this.#lookUp();
      await mapConcurrently([...this.#others], async ([run, other]) => {
        const askedAt = this.#clock.now();
        if (!(await asker.isAbsent(run))) other.absentSince = undefined;
        else other.absentSince ??= askedAt;
        await this.#consider(run, other);
      });
    } catch (error) {
      onError(ensureError(error));
      return RETRY_MS;
    }
    const seemGone = [...this.#others.values()].some((other) => this.#seemsGone(other));
    return seemGone ? AGAIN_MS : POLL_MS;
  }

  #seemsGone({ absentSince, notBefore }: OtherRun): boolean {
    return absentSince !== undefined && this.#clock.now() >= notBefore;
  }

  async #consider(run: string, other: OtherRun): Promise<void> {
    const now = this.#clock.now();
    const { absentSince = now } = other;
    if (!this.#seemsGone(other) || now - absentSince < GONE_MS) return;
    other.notBefore = now + UNPROVEN_MS;
    if (!(await this.#end(run))) return;
    this.#others.delete(run);
    this.#ended.add(run);
    this.#isStale = true;
    await this.#deps.onEnded(other.key);
  }

  /** Looks up which runs of other hosts there are. */
  async #lookUp(): Promise<void> {
    const { leases, prefixes, run: own } = this.#deps;
    this.#isStale = false;
    try {
      const found = new Map<string, string>();
      for (const [key, { value }] of await leases.list(prefixes[0])) found.set(value.owner, key);
      for (const run of this.#others.keys()) if (!found.has(run)) this.#others.delete(run);
      for (const [run, key] of found) {
        if (run === own || this.#ended.has(run) || this.#others.has(run)) continue;
        this.#others.set(run, { key, absentSince: undefined, notBefore: 0 });
      }
    } catch (error) {
      this.#isStale = true;
      throw error;
    }
  }

  /** Ends the leases of a run if its connections are closed; returns whether they are. */
  async #end(run: string): Promise<boolean> {
    const { leases, asker, prefixes } = this.#deps;
    const lists = await Promise.all(prefixes.map((prefix) => leases.list(prefix)));
    const held = lists.flatMap((list) => [...list].filter(([, { value }]) => value.owner === run));
    if (held.length === 0) return true;
    const brokers = new Set(held.flatMap(([, lease]) => brokersOf(lease)));
    if (!(await asker.isAbsentAt(run, [...brokers]))) return false;
    await mapConcurrently(held, ([key, lease]) => leases.end(key, lease));
    return true;
  }
}

/** Returns the ids of brokers in a host's lease. */
function brokersOf({ value }: StoredLease): string[] {
  const { brokers } = value;
  if (!Array.isArray(brokers)) return [];
  return brokers.map(String);
}
