import { type Encoding, isGrouped, type TensorData } from "../../protocol/dtypes.ts";
import { ensureError, PserverError, reactionTo } from "../../protocol/errors.ts";
import { shardOfFragment } from "../../protocol/layout.ts";
import {
  type ContributionAccount,
  type ContributionForm,
  encodeFragmentsRequest,
  type FragmentRow,
  type FragmentsReply,
  type FragmentsRequest,
  parseFragmentsReply,
  sumOfAccounts,
} from "../../protocol/messages/contributions.ts";
import {
  type ParameterInfo,
  readStatusPages,
  type StatusRequest,
} from "../../protocol/messages/lifecycle-messages.ts";
import { quoteName } from "../../protocol/names.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { TensorLike } from "../../protocol/tensor.ts";
import type { Deadline, NamedTensor } from "../calls/calls.ts";
import type { Parameters } from "../calls/parameters.ts";
import type { Positions } from "../core/shard-window.ts";
import { askOwner, type OwnerQuestion } from "../io/owner-questions.ts";
import type { Session } from "../io/session.ts";
import type { UpdateSender } from "../io/update-sender.ts";
import type { Puller } from "../pull/puller.ts";
import type { Requests } from "../wire/wire.ts";
import { checkFiniteElements, entriesOf, fitTensor, type TensorRecord } from "./block-updates.ts";
import type { RoundingErrors } from "./rounding-errors.ts";
import { UpdateCollector } from "./update-collector.ts";

/** What a contribution says besides its tensors. */
export interface ContributionWork {
  /** The version of the fragment from which the trainer began: that of the pull. */
  readonly base: number;
  /** Inner steps since then. */
  readonly steps: number;
  /** Tokens, or examples, since then. */
  readonly tokens: number;
  /** How long one of these steps took, in milliseconds; by it hosts decide how long others may be waited for. */
  readonly stepMs?: number;
  /**
   * What the tensors are: the `displacement`, what was pulled less what was learned, by default; or the `parameters` as
   * they are now, of which hosts compute the displacement, if no later version has come meanwhile.
   */
  readonly form?: ContributionForm;
  readonly encoding?: Encoding;
  /** Names of tensors that are sent as they are; none by default. */
  readonly exact?: readonly string[];
  /** Whether what rounding to `int8` or `e3m0` leaves out is added to the next contribution; true by default. */
  readonly errorFeedback?: boolean;
}

/** What became of a contribution. */
export interface ContributionResult {
  /** The round that it counts in: the version that the fragment will get; undefined if it came too late. */
  readonly round: number | undefined;
}

/** A fragment as it was pulled: its version, and the values of its parameters at that version. */
export interface PulledFragment {
  readonly version: number;
  readonly tensors: NamedTensor[];
}

/** The fragments of a job, and what became of this trainer's contributions to them. */
export interface FragmentVersions {
  /** The version of each fragment, by its name. */
  readonly versions: ReadonlyMap<string, number>;
  readonly account: ContributionAccount;
}

/** Whether a trainer may contribute to a round of a fragment. */
export interface Sampling {
  /** The open round. */
  readonly round: number;
  readonly isSampled: boolean;
}

/** How a fragment is to be pulled. */
export interface FragmentMode {
  /** The least version to wait for; by default the present one. */
  readonly minVersion?: number;
  readonly encoding?: Encoding;
  /** Names of parameters that are read as they are; none by default. */
  readonly exact?: readonly string[];
  readonly into?: Readonly<Record<string, TensorData>>;
}

/** What a request for fragments waits for. */
type WantedFragment = Pick<FragmentsRequest, "fragment" | "version" | "member">;

/** Dependencies of {@link Fragments}. */
interface FragmentsDeps {
  readonly requests: Requests;
  readonly sender: UpdateSender;
  readonly session: Session;
  readonly parameters: Parameters;
  readonly positions: Positions;
  readonly puller: Puller;
  readonly errors: RoundingErrors;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  /** The largest message the broker takes. */
  readonly payloadBytesMax: () => number;
}

/** A trainer's part in the rounds of the fragments of a `diloco` job. */
export class Fragments {
  readonly #deps: FragmentsDeps;
  /** The parameters of each fragment, as they were listed last; undefined before. */
  #known: ReadonlyMap<string, readonly string[]> | undefined;
  /** The session in which this trainer has become a member; 0 before. */
  #memberSession = 0;
  /** Exits that it has asked hosts for. */
  #exits = 0;
  /** Number of the last contribution; numbers of all sessions ascend. */
  #contributions = 0;
  /** By shard: the end of the contributions before. One goes after the other, so that a host keeps the parts of one. */
  readonly #turns = new Map<number, Promise<unknown>>();

  constructor(deps: FragmentsDeps) {
    this.#deps = deps;
  }

  /**
   * Contributes to a fragment; see `Client.contribute`. A contribution whose parts have not all been taken in one
   * session, or that came while the trainer was no member, is sent again.
   */
  async contribute(
    fragment: string,
    tensors: TensorRecord,
    work: ContributionWork,
    deadline: Deadline,
  ): Promise<ContributionResult> {
    const { session } = this.#deps;
    const shard = shardOfFragment(fragment, session.shards);
    const before = this.#turns.get(shard) ?? Promise.resolve();
    const turn = deadline
      .race(before.catch(() => undefined))
      .then(() => this.#contribute(fragment, tensors, work, deadline));
    this.#turns.set(
      shard,
      Promise.allSettled([before, turn]).then(() => undefined),
    );
    return await turn;
  }

  async #contribute(
    fragment: string,
    tensors: TensorRecord,
    work: ContributionWork,
    deadline: Deadline,
  ): Promise<ContributionResult> {
    const { parameters, sender } = this.#deps;
    const { names, values } = entriesOf(tensors, deadline.what);
    const { exact = [] } = work;
    checkExact(exact, names);
    try {
      const infos = await parameters.require(names, deadline);
      const { collector, numbered } = this.#collector(fragment, work);
      for (const [i, info] of infos.entries()) {
        checkFragment(info, fragment);
        const { data } = fitTensor(info, values[i] as TensorLike);
        const encoding = exact.includes(info.name) ? undefined : work.encoding;
        checkFiniteElements(info, data, encoding);
        for (let index = 0; index < info.layout.blocks; index++)
          collector.addBlock(info, index, data, undefined, undefined, { encoding });
      }
      const sources = collector.finish();
      while (true) {
        await this.#enter(deadline);
        numbered.id = ++this.#contributions;
        const sent = await this.#unlessOut(sender.send(sources, { deadline, countsLate: true }));
        if (sent === undefined) continue;
        if (sent.late > 0) return { round: undefined };
        if (sent.version > 0) return { round: sent.version };
        // The parts were taken in two sessions, and the shard has dropped those of the first one.
      }
    } catch (caught) {
      const error = ensureError(caught);
      this.#known = undefined;
      if (reactionTo(error.code) === "look-up") for (const name of names) parameters.forget(name);
      throw error;
    }
  }

  #collector(
    fragment: string,
    work: ContributionWork,
  ): { collector: UpdateCollector; numbered: { id: number } } {
    const { subjects, trainer, payloadBytesMax, errors } = this.#deps;
    const { base, steps, tokens, stepMs, form = "displacement" } = work;
    const { encoding, errorFeedback = true } = work;
    const said = {
      fragment,
      base,
      steps,
      tokens,
      form,
      ...(stepMs === undefined ? {} : { stepMs }),
    };
    const contribution = { ...said, id: 0 };
    const kind = {
      ...({ verb: "push", encoding, operation: { op: "grad" } } as const),
      errors: errorFeedback && isGrouped(encoding) ? errors : undefined,
      contribution,
    };
    const collector = new UpdateCollector(kind, {
      sender: { subjects, trainer },
      payloadBytesMax: payloadBytesMax(),
      separatesIntegers: false,
    });
    return { collector, numbered: contribution };
  }

  /** Returns the result of sending; undefined if the trainer was no member any more. */
  async #unlessOut<Sent>(sending: Promise<Sent>): Promise<Sent | undefined> {
    try {
      return await sending;
    } catch (caught) {
      if (reactionTo(ensureError(caught).code) !== "enter-anew") throw caught;
      this.#memberSession = 0;
      return undefined;
    }
  }

  /** Has hosts make the trainer a member, unless it is one in this session. */
  async #enter(deadline: Deadline): Promise<void> {
    const { session } = this.#deps;
    if (this.#memberSession === session.number) return;
    const { number } = session;
    await session.request("enter", { exits: this.#exits }, deadline);
    this.#memberSession = number;
  }

  /** Ends the membership: no round waits for this trainer until it contributes again. */
  async exit(deadline: Deadline): Promise<void> {
    this.#memberSession = 0;
    this.#exits += 1;
    await this.#deps.session.request("exit", { exits: this.#exits }, deadline);
  }

  /** Makes the trainer a member before its first contribution; see `Client.enterRounds`. */
  async enter(deadline: Deadline): Promise<void> {
    await this.#enter(deadline);
  }

  /** Returns the versions of all fragments; see `Client.fragments`. */
  async versions(deadline: Deadline): Promise<FragmentVersions> {
    const { shards } = this.#deps.session;
    const names = [...(await this.#list(deadline)).keys()];
    const asked = [...new Set(names.map((name) => shardOfFragment(name, shards)))];
    const replies = await Promise.all(asked.map((shard) => this.#ask(shard, {}, deadline)));
    return {
      versions: new Map(
        replies.flatMap(({ fragments }) => fragments.map(([name, version]) => [name, version])),
      ),
      account: sumOfAccounts(replies.map(({ account }) => account)),
    };
  }

  /** Returns whether this trainer may contribute to the open round; see `Client.sampling`. */
  async sampling(fragment: string, minVersion: number, deadline: Deadline): Promise<Sampling> {
    // Samples are drawn of the members.
    await this.#enter(deadline);
    const wanted = { fragment, version: minVersion, member: true };
    const [, version, isSampled] = await this.#rowOf(wanted, deadline);
    return { round: version + 1, isSampled };
  }

  /** Returns a fragment at one version; see `Client.pullFragment`. */
  async pull(fragment: string, mode: FragmentMode, deadline: Deadline): Promise<PulledFragment> {
    const { minVersion = 0 } = mode;
    const names = await this.#namesOf(fragment, deadline);
    checkExact(mode.exact ?? [], names);
    let version = await this.#versionOf(fragment, minVersion, deadline);
    while (true) {
      const pulled = await this.#pullOnce(names, mode, deadline);
      const after = await this.#versionOf(fragment, minVersion, deadline);
      // A round has closed while its blocks were read.
      if (after === version) return { version, tensors: pulled };
      version = after;
    }
  }

  /** Reads parameters, each in its encoding; returns them in the order of the names. */
  async #pullOnce(
    names: readonly string[],
    { encoding, exact = [], into }: FragmentMode,
    deadline: Deadline,
  ): Promise<NamedTensor[]> {
    const { puller } = this.#deps;
    if (exact.length === 0) return await puller.pull(names, deadline, { encoding, into });
    const isExact = new Set(exact);
    const encoded = names.filter((name) => !isExact.has(name));
    const [pulledEncoded, pulledExact] = await Promise.all([
      encoded.length === 0 ? [] : puller.pull(encoded, deadline, { encoding, into }),
      puller.pull(exact, deadline, { into }),
    ]);
    const tensors = new Map([...pulledEncoded, ...pulledExact].map((each) => [each.name, each]));
    return names.flatMap((name) => tensors.get(name) ?? []);
  }

  async #versionOf(fragment: string, minVersion: number, deadline: Deadline): Promise<number> {
    const [, version] = await this.#rowOf({ fragment, version: minVersion }, deadline);
    return version;
  }

  async #rowOf(
    wanted: WantedFragment & { readonly fragment: string },
    deadline: Deadline,
  ): Promise<FragmentRow> {
    const { fragment } = wanted;
    const { session } = this.#deps;
    const shard = shardOfFragment(fragment, session.shards);
    const { fragments } = await this.#ask(shard, wanted, deadline);
    const found = fragments.find(([name]) => name === fragment);
    if (found === undefined) throw unknown(fragment);
    return found;
  }

  async #ask(shard: number, wanted: WantedFragment, deadline: Deadline): Promise<FragmentsReply> {
    const { subjects, trainer } = this.#deps;
    const subject = subjects.fragments(shard, trainer);
    const body: OwnerQuestion<FragmentsReply>["body"] = (at) =>
      encodeFragmentsRequest({ ...at, ...wanted });
    return await askOwner(
      this.#deps,
      { shard, subject, body, read: parseFragmentsReply },
      deadline,
    );
  }

  async #namesOf(fragment: string, deadline: Deadline): Promise<readonly string[]> {
    const known = this.#known?.get(fragment) ?? (await this.#list(deadline)).get(fragment);
    if (known === undefined) throw unknown(fragment);
    return known;
  }

  /** Lists the parameters of each fragment. */
  async #list(deadline: Deadline): Promise<ReadonlyMap<string, readonly string[]>> {
    const ask = (request: StatusRequest) => this.#deps.parameters.status(request, deadline);
    const { parameters } = await readStatusPages(ask);
    const fragments = new Map<string, string[]>();
    for (const { name, config } of parameters) {
      if (config.fragment === undefined) continue;
      const names = fragments.get(config.fragment) ?? [];
      names.push(name);
      fragments.set(config.fragment, names);
    }
    this.#known = fragments;
    return fragments;
  }
}

/** @throws BAD_VALUE for a name that is not among `names`. */
function checkExact(exact: readonly string[], names: readonly string[]): void {
  const unknown = exact.find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const text = `exact: expected names of tensors of the fragment; received ${quoteName(unknown)}`;
  throw new PserverError("BAD_VALUE", text, { parameter: unknown });
}

/** @throws BAD_VALUE unless a parameter belongs to the fragment. */
function checkFragment({ name, config }: ParameterInfo, fragment: string): void {
  if (config.fragment === fragment) return;
  const received = config.fragment === undefined ? "none" : quoteName(config.fragment);
  throw new PserverError(
    "BAD_VALUE",
    `${quoteName(name)}: expected a parameter of fragment ${quoteName(fragment)}; received one of ${received}`,
    { parameter: name, expected: fragment, received: config.fragment },
  );
}

function unknown(fragment: string): PserverError {
  const text = `no parameter belongs to fragment ${quoteName(fragment)}`;
  return new PserverError("UNKNOWN_PARAMETER", text, { fragment });
}
