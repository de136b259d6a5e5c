import { TimeoutError, } from "@nats-io/transport-node";
import { startAnswerDeadline } from "./answer-deadline.js";
/** How long nats.js keeps a place for the answer to one copy: long enough for the largest message on a slow link. */
const COPY_MS = 600_000;
/**
 * Sends a request, and sends it again each second until an answer comes, to whichever copy: a request to a stream
 * without a leader, or with one that hangs, is lost, and its successor hears only what is sent from then on. A copy
 * is sent only after the broker has answered a PING that followed the last one: until then that copy, or its answer,
 * may still be on a slow link.
 * @throws as `request` does, the first error of any copy; a timeout after `timeout` in all, for which nothing was on the
 * link ({@link startAnswerDeadline}).
 */
export function requestRepeatedly(connection, subject, payload, options) {
    return request(connection, subject, payload, { ...options, isRepeated: true });
}
/** Sends a request once; the rest as {@link requestRepeatedly}. */
export function requestOnce(connection, subject, payload, options) {
    return request(connection, subject, payload, { ...options, isRepeated: false });
}
function request(connection, subject, payload, { isRepeated, ...options }) {
    return new Promise((resolve, reject) => {
        const send = () => {
            connection.request(subject, payload, { ...options, timeout: COPY_MS }).then((answer) => {
                stop();
                resolve(answer);
            }, (error) => {
                stop();
                reject(error);
            });
        };
        const stop = startAnswerDeadline(connection, options.timeout, {
            ...(isRepeated ? { onSilence: send } : {}),
            onOver: () => reject(new TimeoutError()),
        });
        send();
    });
}
//# sourceMappingURL=repeated-request.js.map