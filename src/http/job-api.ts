import { randomUUID } from "node:crypto";
import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { describeJob } from "../actors/job/describe-job.ts";
import { listJobStreams, noSuchJob, streamsOfJob } from "../actors/job/open-job.ts";
import {
  type AdminConnectionOptions,
  type JobAdmin,
  openAdmin,
  openStoreConnection,
} from "../client/admin/job-admin.ts";
import { readJobStatus } from "../client/admin/job-status.ts";
import { resolveSettings } from "../client/wire/broker-settings.ts";
import { openHistory } from "../history/open-journal.ts";
import { parsePoint } from "../history/points.ts";
import { updateEntry } from "../history/reports/update-entry.ts";
import type { HistoryPlace, HistorySource } from "../history/source.ts";
import {
  checkJobName,
  ensureError,
  JOB_DEFAULT,
  mismatch,
  PserverError,
} from "../protocol/index.ts";
import { orNoJetStream } from "../transport/broker-error.ts";
import { openJetStream } from "../transport/jetstream.ts";
import type { BrokerAccess } from "./broker-access.ts";
import { HISTORY_DETAILS, type HistoryDetail, OneAtATime } from "./history-api.ts";
import {
  type HttpAnswer,
  type HttpRequest,
  type HttpStream,
  jsonAnswer,
  missing,
  notFound,
  type Route,
} from "./http-server.ts";
import type { JobChanges } from "./job-changes.ts";
import { LiveJobs } from "./live-jobs.ts";
import { queryValues } from "./query.ts";
import { readTapePage } from "./tape-page.ts";

/** How long a request may take, and one for which journals are folded. */
const TIMEOUT_MS = 10_000;
const FOLD_MS = 50_000;

/** How long the broker or a host may take to answer. */
const ANSWER_MS = 5_000;

/** Updates on a page of a log, unless the request names a number, and at most. */
const PAGE = { usual: 100, max: 1_000 } as const;

/** What the page is told of the server that serves it. */
interface ServerFacts {
  readonly version: string;
  /** The job with which the server was started; a broker may hold others. */
  readonly job: string;
  /** Whether the server takes requests for changes. */
  readonly canChange: boolean;
}

/** Dependencies of {@link jobApi}. */
interface JobApiDeps {
  readonly access: () => BrokerAccess;
  readonly facts: ServerFacts;
  readonly changes: JobChanges;
}

/**
 * Makes the route `/api`, which answers in JSON what commands print with `--json`: `/api/jobs`, `/api/jobs/JOB` and
 * `/api/jobs/JOB/log`. Each request has a connection to the broker of its own, as a command has: what it asks for
 * waits for nothing that serves, and nothing waits for it. `/api/jobs/JOB/fork` and `/api/jobs/JOB/rewind` change a
 * job.
 */
export function jobApi({ access, facts, changes }: JobApiDeps): Route<HttpAnswer | HttpStream> {
  const folding = new OneAtATime();
  const live = new LiveJobs(access);
  return {
    isProtected: true,
    takesChanges: true,
    answer: async (request) => {
      const [, collection, job, detail, ...rest] = request.path;
      if (request.path.length === 1 && request.change === undefined) return jsonAnswer(facts);
      if (collection !== "jobs" || rest.length > 0) throw notFound(pathOf(request));
      if (job !== undefined) checkJob(job);
      if (request.change !== undefined) {
        if (job === undefined || (detail !== "fork" && detail !== "rewind")) {
          throw notFound(pathOf(request));
        }
        return changes.begin(job, detail, request.change);
      }
      if (job !== undefined && detail === "live") {
        await requireJob(access(), job, request.signal);
        return { open: (signal) => live.events(job, signal) };
      }
      const past =
        detail !== undefined && Object.hasOwn(HISTORY_DETAILS, detail)
          ? HISTORY_DETAILS[detail]
          : undefined;
      const { signal, end } = withDeadline(request.signal, past?.folds ? FOLD_MS : TIMEOUT_MS);
      try {
        if (job === undefined) return await listJobs(access(), signal);
        if (detail === undefined) return await showJob(access(), job, signal);
        const { query } = request;
        if (past !== undefined) {
          const show = () => showPast(access(), job, past, query, signal);
          return await (past.folds ? folding.run(show) : show());
        }
        if (detail === "parameters") return await listParameters(access(), job, signal);
        if (detail !== "log") throw notFound(pathOf(request));
        return await showLog(access(), job, query, signal);
      } finally {
        end();
      }
    },
  };
}

function pathOf({ path }: HttpRequest): string {
  return `/${path.join("/")}`;
}

function checkJob(job: string): void {
  try {
    checkJobName(job);
  } catch (error) {
    throw missing("BAD_NAME", ensureError(error).message);
  }
}

/** Returns a signal that is also aborted with TIMEOUT once a request has taken too long. */
function withDeadline(
  signal: AbortSignal,
  timeoutMs: number,
): { readonly signal: AbortSignal; end(): void } {
  const late = new AbortController();
  const text = `the request has taken more than ${timeoutMs} ms; ask for less`;
  const timer = setTimeout(() => late.abort(new PserverError("TIMEOUT", text)), timeoutMs);
  return { signal: AbortSignal.any([signal, late.signal]), end: () => clearTimeout(timer) };
}

function connectionOf(
  { broker, environment }: BrokerAccess,
  job: string,
  signal: AbortSignal,
): AdminConnectionOptions {
  return { job, broker, environment, connectTimeoutMs: ANSWER_MS, signal };
}

/** A name for one request's connection as hosts have one. */
function storeName(): string {
  return `http-${randomUUID().slice(0, 8)}`;
}

async function listJobs(access: BrokerAccess, signal: AbortSignal): Promise<HttpAnswer> {
  return await withStore(access, signal, async (connection, manager) => {
    const jobs = await listJobStreams(manager);
    return jsonAnswer(await Promise.all(jobs.map((job) => describeJob(connection, job))));
  });
}

/** Runs `use` with a connection as hosts have one, for the JetStream API. */
async function withStore<T>(
  access: BrokerAccess,
  signal: AbortSignal,
  use: (connection: NatsConnection, manager: JetStreamManager) => Promise<T>,
): Promise<T> {
  const options = connectionOf(access, JOB_DEFAULT, signal);
  const connection = await openStoreConnection(options, storeName());
  try {
    return await use(
      connection,
      await openJetStream(connection, ANSWER_MS).jetstreamManager(false),
    );
  } catch (error) {
    throw orNoJetStream(ensureError(error), connection);
  } finally {
    await connection.close();
  }
}

async function showJob(
  access: BrokerAccess,
  job: string,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  return await withAdmin(access, job, signal, async (admin) =>
    jsonAnswer(await readJobStatus(admin, job)),
  );
}

/** Runs `use` with a connection to the hosts of a job. @throws BAD_NAME if the broker holds no such job. */
async function withAdmin<Result>(
  access: BrokerAccess,
  job: string,
  signal: AbortSignal,
  use: (admin: JobAdmin) => Promise<Result>,
): Promise<Result> {
  const options = connectionOf(access, job, signal);
  const admin = await openAdmin({ ...options, trainer: access.asker, timeoutMs: ANSWER_MS });
  try {
    return await use(admin);
  } catch (error) {
    if (ensureError(error).code === "NO_HOST") await requireJob(access, job, signal);
    throw error;
  } finally {
    await admin.close();
  }
}

/** @throws BAD_NAME if the broker holds no such job, as far as this user may know that. */
async function requireJob(access: BrokerAccess, job: string, signal: AbortSignal): Promise<void> {
  const streams = await withStore(access, signal, (_connection, manager) =>
    streamsOfJob(manager, job),
  ).catch((thrown: unknown) => {
    const error = ensureError(thrown);
    // Whoever may only ask hosts is told by them.
    if (error.code === "DENIED") return undefined;
    throw error;
  });
  if (streams?.length === 0) throw missing("BAD_NAME", noSuchJob(job).message);
}

async function listParameters(
  access: BrokerAccess,
  job: string,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  return await withAdmin(access, job, signal, async (admin) => {
    const { parameters } = await admin.statusAndParameters();
    const entries = parameters.map(({ name, dtype, shape, ready, config }) => {
      return { name, dtype, shape, ready, config };
    });
    return jsonAnswer({ parameters: entries });
  });
}

async function showPast(
  access: BrokerAccess,
  job: string,
  detail: HistoryDetail,
  query: URLSearchParams,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  return await withSource(access, job, signal, async (source, place) =>
    jsonAnswer(await detail.answer({ source, place, query, signal })),
  );
}

async function showLog(
  access: BrokerAccess,
  job: string,
  query: URLSearchParams,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  const { limit, sinceMs, ...wanted } = parseQuery(query);
  return await withSource(access, job, signal, async (source) => {
    const { updates, next } = await readTapePage(source, { ...wanted, limit, sinceMs, signal });
    return jsonAnswer({ updates: updates.map(updateEntry), next });
  });
}

/** Runs `use` with the history of a job. @throws BAD_NAME if the broker holds no such job; what `use` throws. */
async function withSource<Result>(
  { broker, environment }: BrokerAccess,
  job: string,
  signal: AbortSignal,
  use: (source: HistorySource, place: HistoryPlace) => Promise<Result>,
): Promise<Result> {
  const connection = resolveSettings(broker, environment);
  const place: HistoryPlace = { kind: "broker", connection, job };
  const source = await openHistory(place).catch((thrown: unknown) => {
    const error = ensureError(thrown);
    throw error.code === "BAD_NAME" ? missing(error.code, error.message) : error;
  });
  try {
    return await use(source, place);
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    await source.close();
  }
}

/** Parameters of a request for a log. */
const LOG_PARAMETERS = ["param", "trainer", "since", "limit", "after"] as const;

interface LogQuery {
  readonly parameter: string | undefined;
  readonly trainer: string | undefined;
  readonly sinceMs: number;
  readonly limit: number;
  readonly after: string | undefined;
}

/** @throws BAD_VALUE for a parameter that there is not, is given twice, or has no such value. */
function parseQuery(query: URLSearchParams): LogQuery {
  const given = queryValues(query, LOG_PARAMETERS);
  return {
    parameter: given.param,
    trainer: given.trainer,
    sinceMs: parseSince(given.since),
    limit: parseLimit(given.limit),
    after: given.after,
  };
}

function parseSince(text: string | undefined): number {
  const point = parsePoint(text ?? "start", Date.now());
  if (point.kind === "start") return 0;
  if (point.kind === "time") return point.timeMs;
  const expected = "start or a time such as 10m ago or 2026-11-23T04:12:07Z";
  throw mismatch("BAD_VALUE", "since", expected, JSON.stringify(text));
}

function parseLimit(text: string | undefined): number {
  const limit = text === undefined ? PAGE.usual : /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= PAGE.max) return limit;
  const expected = `a whole number from 1 to ${PAGE.max}`;
  throw mismatch("BAD_VALUE", "limit", expected, JSON.stringify(text));
}
