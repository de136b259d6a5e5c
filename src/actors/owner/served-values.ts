import {
  type Allocate,
  blockRows,
  decodeBatchRead,
  draftPullReply,
  type Fields,
  type Position,
  PserverError,
  type PullRequest,
  parsePullRequest,
  readPartRequest,
  sealMessage,
} from "../../protocol/index.ts";
import type { BlockName } from "../fold/block.ts";
import { ElementReader } from "../fold/read-elements.ts";
import type { Shard } from "../fold/shard.ts";
import { KnownChecksums } from "./known-checksums.ts";
import type { ReadConditions } from "./read-conditions.ts";
import type { Asker, Responder } from "./responder.ts";
import { ServedRead } from "./served-read.ts";
import { WantedParts } from "./wanted-parts.ts";

/** Memory that an entry of a pending batched read takes, about. */
const READ_ENTRY_BYTES = 128;

/** Dependencies of {@link ServedValues}. */
export interface ServedValuesDeps {
  /** Number of the shard. */
  readonly number: number;
  readonly shard: Shard;
  readonly conditions: ReadConditions;
  readonly responder: Responder;
  /** Position of the fold. */
  readonly position: () => Position;
}

/** A request for the values of a block. */
interface Pull extends BlockName {
  readonly request: PullRequest;
  /** Index of the requested part; empty for all elements. */
  readonly part: Uint8Array;
}

/** Answers requests for the values of blocks, once the fold has reached what they name. */
export class ServedValues {
  readonly #deps: ServedValuesDeps;
  readonly #parts: WantedParts;
  readonly #checksums: KnownChecksums = new KnownChecksums();

  constructor(deps: ServedValuesDeps) {
    this.#deps = deps;
    this.#parts = new WantedParts(deps.number);
  }

  /** Answers a pull of one block, whose message has these fields and, for a part, its index as `data`. */
  pull(asker: Asker, block: BlockName, fields: Fields, data: Uint8Array): void {
    const { conditions, responder } = this.#deps;
    const request = parsePullRequest(fields);
    const { index: part, release } = this.#parts.hold(asker.from, data);
    const answer = (): void => {
      const willAnswer = responder.respond(asker, (allocate) => {
        release();
        return this.#values({ ...block, request, part }, allocate);
      });
      if (!willAnswer) release();
    };
    conditions.afterBoth(asker, request, answer, (error) => {
      release();
      responder.refuse(asker, error);
    });
  }

  /** Answers a batched read, in pieces. */
  read(asker: Asker, bytes: Uint8Array): void {
    const { shard, position, conditions, responder } = this.#deps;
    const request = decodeBatchRead(bytes);
    const entryBytes = request.entries.length * READ_ENTRY_BYTES;
    const { index: data, release } = this.#parts.hold(asker.from, request.data, entryBytes);
    const payloadBytesMax = (): number => responder.payloadBytesMax;
    const read = new ServedRead({ shard, position, payloadBytesMax }, { ...request, data });
    const answer = (): void => {
      responder.respondInPieces(asker, (allocate) => read.next(allocate), release);
    };
    conditions.afterBoth(asker, request, answer, (error) => {
      release();
      responder.refuse(asker, error);
    });
  }

  #values({ parameter, index, request, part }: Pull, allocate: Allocate): Uint8Array {
    const { shard, position } = this.#deps;
    const { epoch, encoding } = request;
    const block = shard.block(parameter, index);
    if (block?.epoch !== epoch) {
      throw new PserverError(
        "STALE_EPOCH",
        `${parameter} block ${index}: expected epoch ${block?.epoch ?? "none"}; received ${epoch}`,
        { parameter, block: index, expected: block?.epoch, received: epoch },
      );
    }
    const { dtype, version } = block;
    const reader = new ElementReader(shard.memory, block, {
      part: request.part && readPartRequest(request.part, part, blockRows(block)),
      encoding,
    });
    const head = { epoch, dtype, version, ...position() };
    const reply = encoding === undefined ? head : { ...head, encoding };
    const draft = draftPullReply(reply, reader.bytes, allocate);
    // A copy: the block may change before the broker has taken the message.
    reader.read(draft.data);
    const isWhole = request.part === undefined && encoding === undefined;
    return sealMessage(draft, isWhole ? this.#checksums.of(block, draft.data) : undefined);
  }
}
