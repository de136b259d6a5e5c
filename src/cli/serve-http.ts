import { join } from "node:path";
import { packageRoot } from "../broker/broker-config.ts";
import type { BrokerAccess } from "../http/broker-access.ts";
import { healthRoute, metricsRoute, readyRoute } from "../http/health.ts";
import { type HttpAnswer, HttpServer, type HttpStream, type Route } from "../http/http-server.ts";
import { jobApi } from "../http/job-api.ts";
import { JobChanges } from "../http/job-changes.ts";
import { pageFilesRoute, pageRoute } from "../http/page-files.ts";
import { WatchedHosts } from "../http/watched-hosts.ts";
import { commandStarter } from "./commands-of-page.ts";
import type { HttpSetting } from "./options/http-options.ts";
import type { Output } from "./output/output.ts";
import { packageVersion } from "./program-version.ts";

/** The page and JSON that a command serves. */
interface PageService {
  readonly url: string;
  /** Stops a fork or a rewind that the page has started, in order: it needs the broker. */
  endChanges(): Promise<void>;
  /** Stops all. */
  close(): Promise<void>;
}

/** HTTP that a command with hosts serves. */
export interface HttpService extends PageService {
  /** The hosts of which it tells. */
  readonly hosts: WatchedHosts;
}

/** Routes by the first names of their paths. */
type Routes = Readonly<Record<string, Route<HttpAnswer | HttpStream>>>;

/**
 * Serves the page, and the jobs of a broker as JSON; `access` returns how to reach it, or throws while it is not there
 * yet. The caller closes the service.
 * @throws as `HttpServer.start`.
 */
export async function servePage(
  setting: HttpSetting,
  job: string,
  access: () => BrokerAccess,
  output: Output,
  more: Routes = {},
): Promise<PageService> {
  const pageDirectory = join(packageRoot(), "dist", "page");
  const changes = new JobChanges(commandStarter(access));
  const facts = { version: packageVersion(), job, canChange: setting.token !== undefined };
  const server = await HttpServer.start({
    ...setting,
    routes: {
      "": pageRoute(pageDirectory),
      page: pageFilesRoute(pageDirectory),
      api: jobApi({ access, facts, changes }),
      ...more,
    },
    onError: ({ code, message }) => output.warning(`${code}: ${message}`),
  });
  const close = async (): Promise<void> => {
    await changes.close();
    await server.close();
  };
  return { url: server.url, endChanges: () => changes.close(), close };
}

/**
 * Serves what a command's hosts report, and what {@link servePage} serves. The caller closes the service.
 * @throws as `HttpServer.start`.
 */
export async function serveHttp(
  setting: HttpSetting,
  job: string,
  access: () => BrokerAccess,
  output: Output,
): Promise<HttpService> {
  const hosts = new WatchedHosts(job);
  const page = await servePage(setting, job, access, output, {
    metrics: metricsRoute(hosts, { version: packageVersion(), node: process.versions.node }),
    healthz: healthRoute(hosts),
    readyz: readyRoute(hosts),
  });
  return { ...page, hosts };
}
