/** Finds nats-server, checks its version, runs it on a locked store directory. */
export { findBroker } from "./find-broker.js";
export { setUpBroker } from "./set-up-broker.js";
export { startBroker } from "./start-broker.js";
//# sourceMappingURL=index.js.map