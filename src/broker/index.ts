/** Finds nats-server, checks its version, runs it on a locked store directory. */

export { type FoundBroker, findBroker } from "./find-broker.ts";
export { setUpBroker } from "./set-up-broker.ts";
export { type Broker, type BrokerExit, type BrokerOptions, startBroker } from "./start-broker.ts";
