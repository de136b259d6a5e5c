/** How long an answer may take before it is asked how far the broker is. */
const LOOK_MS = 1_000;
/**
 * Counts the time for which a message that was just sent has no answer, and ends after `timeoutMs` of it. Time for which
 * the message, or its answer, may still be on a slow link does not count: the answer to a PING comes after all that the
 * broker had sent before, and shows that it has read all that it was sent. A broker that answers no PING is no reason to
 * wait for ever: its connection is given up and made anew.
 * @returns what ends the count.
 */
export function startAnswerDeadline(connection, timeoutMs, { onSilence, onOver }) {
    let leftMs = timeoutMs;
    let isStopped = false;
    let timer;
    const wait = () => {
        const pauseMs = Math.min(LOOK_MS, leftMs);
        leftMs -= pauseMs;
        timer = setTimeout(() => {
            connection.flush().then(() => look(true), 
            // The connection was lost, and with it what was sent: time goes on until another one is there.
            () => look(false));
        }, pauseMs);
    };
    const look = (hasRead) => {
        if (isStopped)
            return;
        if (leftMs <= 0) {
            isStopped = true;
            onOver();
            return;
        }
        if (hasRead)
            onSilence?.();
        wait();
    };
    wait();
    return () => {
        isStopped = true;
        clearTimeout(timer);
    };
}
//# sourceMappingURL=answer-deadline.js.map