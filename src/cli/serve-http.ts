import { join } from "node:path";
import { packageRoot } from "../broker/broker-config.ts";
import type { BrokerAccess } from "../http/broker-access.ts";
import { healthRoute, metricsRoute, readyRoute } from "../http/health.ts";
import { HttpServer } from "../http/http-server.ts";
import { jobApi } from "../http/job-api.ts";
import { pageFilesRoute, pageRoute } from "../http/page-files.ts";
import { WatchedHosts } from "../http/watched-hosts.ts";
import type { HttpSetting } from "./options/http-options.ts";
import type { Output } from "./output/output.ts";
import { packageVersion } from "./program-version.ts";

/** HTTP that a command serves. */
export interface HttpService {
  readonly url: string;
  /** The hosts of which it tells. */
  readonly hosts: WatchedHosts;
  close(): Promise<void>;
}

/**
 * Serves what a command's hosts report, and the jobs of their broker; `access` returns how to reach it, or throws while
 * it is not there yet. The caller closes the service.
 * @throws as `HttpServer.start`.
 */
export async function serveHttp(
  setting: HttpSetting,
  job: string,
  access: () => BrokerAccess,
  output: Output,
): Promise<HttpService> {
  const hosts = new WatchedHosts(job);
  const pageDirectory = join(packageRoot(), "dist", "page");
  const server = await HttpServer.start({
    ...setting,
    routes: {
      "": pageRoute(pageDirectory),
      page: pageFilesRoute(pageDirectory),
      metrics: metricsRoute(hosts, { version: packageVersion(), node: process.versions.node }),
      healthz: healthRoute(hosts),
      readyz: readyRoute(hosts),
      api: jobApi(access),
    },
    onError: ({ code, message }) => output.warning(`${code}: ${message}`),
  });
  return { url: server.url, hosts, close: () => server.close() };
}
